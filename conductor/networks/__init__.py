"""What clusters are to have for networks of projects: their SDN vnets."""
