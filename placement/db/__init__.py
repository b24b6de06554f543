"""The placement database: schema, migrations, connections and queries."""
