"""What is said about an installation of the training part, by what the environment tells of it."""

import os

import pytest

from app.training_part import Lacking


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_an_installation_by_another_user_is_under_way_and_not_cut_off():
    installing = Lacking(step="torch", pid=os.getpid())
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        os._exit(0 if installing.is_under_way and "cut off" not in str(installing.describe()) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_an_installation_whose_process_is_gone_was_cut_off():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert "cut off" in str(Lacking(step="torch", pid=child).describe())
