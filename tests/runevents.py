"""OpenLineage events, read by the classes of the OpenLineage client."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator
from openlineage.client import event_v2

from graphsvc import resources

FACETS = json.loads(resources.text("schema/openlineage.json"))


def built(event: dict) -> event_v2.RunEvent:
    """Build an event by the classes of the OpenLineage client, which check times, run ids and addresses."""
    about = dict(event)
    assert about.pop("schemaURL") == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    run, job = event_v2.Run(**about.pop("run")), event_v2.Job(**about.pop("job"))
    inputs = [event_v2.InputDataset(**one) for one in about.pop("inputs")]
    outputs = [event_v2.OutputDataset(**one) for one in about.pop("outputs")]
    state = event_v2.RunState(about.pop("eventType"))
    return event_v2.RunEvent(run=run, job=job, inputs=inputs, outputs=outputs, eventType=state, **about)


def check_facets(facets: dict) -> None:
    """Compare facets with the schema that each of them names; of standard ones only that they name theirs."""
    for name, facet in facets.items():
        schema, _, place = facet["_schemaURL"].partition("#")
        assert facet["_producer"].startswith("urn:graphsvc:")
        if name.startswith("graphsvc_"):
            assert schema == FACETS["$id"], name
            Draft202012Validator({**FACETS, "$ref": f"#{place}"}).validate(facet)
        else:
            assert schema.startswith("https://openlineage.io/spec/facets/"), name
