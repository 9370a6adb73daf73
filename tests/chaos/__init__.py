"""Many matches at once while processes are killed at random, and the proof afterwards that nothing came to harm.

`make chaos` runs it for as long as one likes; tests/integration/test_chaos.py runs a short form of it. A storm is

- players (player.py), each a script at one seat that plays match after match and writes down what it was promised,
- a killer (killer.py) that kills and pauses processes by a seed,
- senders of bodies and heads without end (hostile.py, bodies.py),
- an audit (audit.py) that holds the database against itself and against what the players were promised.
"""
