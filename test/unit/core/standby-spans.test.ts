import test from 'ava';
import { StandbySpans } from '../../../src/core/standby-spans.ts';
import { videoPackets, videoTrack } from '../../support/media/packets.ts';

const SECONDS = videoPackets(videoTrack(), { to: 30, framerate: 1 });

function covered(spans: StandbySpans): number[] {
  return SECONDS.flatMap((packet, second) => (spans.has(packet) ? [second] : []));
}

test('packets of the time in which a publisher is away are known, also later', (t) => {
  const spans = new StandbySpans();
  t.deepEqual(covered(spans), []);
  spans.begin(2);
  t.is(covered(spans).length, 28);
  spans.end(5);
  spans.end(6);
  t.deepEqual(covered(spans), [2, 3, 4]);
  spans.begin(7);
  spans.end(8);
  t.deepEqual(covered(spans), [2, 3, 4, 7]);
});

test('only the latest times are remembered', (t) => {
  const spans = new StandbySpans();
  for (let second = 0; second < 20; second += 2) {
    spans.begin(second);
    spans.end(second + 1);
  }
  t.deepEqual(covered(spans), [4, 6, 8, 10, 12, 14, 16, 18]);
});
