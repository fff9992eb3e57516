import test from 'ava';
import { Counters } from '../../../../src/core/counters.ts';
import { InputStream } from '../../../../src/core/input-stream.ts';
import { lowestFirst } from '../../../../src/publishers/webrtc/ladder.ts';
import { videoPackets, videoTrack } from '../../../support/media/packets.ts';

const names = (tracks: readonly { readonly name: string }[]) => tracks.map(({ name }) => name);

test('layers are in the order of their sizes, and those of one size in that of their bitrates', (t) => {
  const source = videoTrack({ id: 0, name: 'source', width: 1280, height: 720 });
  const high = videoTrack({ id: 1, name: 'high', width: 640, height: 360, bitrate: 900_000 });
  const lean = videoTrack({ id: 2, name: 'lean', width: 640, height: 360, bitrate: 400_000 });
  const low = videoTrack({ id: 3, name: 'low', width: 320, height: 180, bitrate: 200_000 });
  const stream = new InputStream('stream', { type: 'Rtmp', kind: 'rtmp' }, new Counters()).addOutput('stream');
  stream.setTracks([source, high, lean, low]);
  // nothing moves: a large picture of few bits
  for (const packet of videoPackets(source, { to: 3, bytes: 500 })) stream.write(packet);
  t.true((stream.measured(0)?.bitrateAvg ?? Infinity) < 200_000);
  t.deepEqual(names(lowestFirst(stream, [source, low, high, lean])), ['low', 'lean', 'high', 'source']);
});
