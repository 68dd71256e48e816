"""The program behind the scripted runtime: a child that follows a script as an agent follows its instructions."""
