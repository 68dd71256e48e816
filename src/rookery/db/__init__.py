"""The project's database: connection, transactions, migrations and what differs between databases."""
