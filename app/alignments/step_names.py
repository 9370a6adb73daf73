"""The names of the steps of an alignment's recipe. Pure."""

BEST_RESPONSES, DEMONSTRATIONS, FIRST_SOCIETY = "best_responses", "demonstrations", "society"
COMPARISONS, TRAINING, SECOND_SOCIETY, ASSESSMENT = "comparisons", "training", "society_again", "assessment"
