"""The seats of a game of taboo and the reasons for which one ends."""

ATTACKER, DEFENDER = 0, 1
ROLES = ("attacker", "defender")

ATTACKER_WINS = "attacker wins"
DEFENDER_WINS = "defender wins"
RULES_BROKEN = "attacker breaks the rules"
TIED = "tied game"
