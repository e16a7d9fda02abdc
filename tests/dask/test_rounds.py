"""What a round of questions sends."""

import time

from anynorm.design.crew import Block, Sums
from anynorm.design.dask_crew import DaskCrew


def count_blocks(blocks, message):
    return Sums(count=len(blocks))


def test_what_is_let_go_does_not_hold_up_the_next_question(client, monkeypatch):
    """Dask's client waits 10 ms after a message until it sends another one."""
    blocks = [client.submit(Block, [[0.0]], [0], None, columns=1, pure=False) for _ in range(3)]
    crew, sent, plain = DaskCrew(client, blocks), [], client._send_to_scheduler
    monkeypatch.setattr(
        client, "_send_to_scheduler", lambda said: (sent.append(said["op"]), plain(said))
    )
    for round_ in range(3):
        assert crew.ask(count_blocks).count == len(blocks)
        time.sleep(0.05)
        assert sent.count("client-releases-keys") == round_ * crew.n_parts
    crew.close()
    time.sleep(0.05)
    assert sent.count("client-releases-keys") == 3 * crew.n_parts + len(blocks)
