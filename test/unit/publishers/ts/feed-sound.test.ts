import test, { type ExecutionContext } from 'ava';
import { adtsFrames } from '../../../../src/codecs/aac.ts';
import { Counters } from '../../../../src/core/counters.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { InputStream } from '../../../../src/core/input-stream.ts';
import { OutputStream } from '../../../../src/core/output-stream.ts';
import type { Track } from '../../../../src/core/track.ts';
import { TsFeed } from '../../../../src/publishers/ts/feed.ts';
import { addDefaultPlaylist } from '../../../../src/publishers/srt/selection.ts';
import {
  AAC_LC,
  audioPackets,
  audioTrack,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../../support/media/packets.ts';
import { ofDefaultTracks } from '../../../support/mpegts/default-tracks.ts';
import { analyse } from '../../../support/mpegts/ts-analyser.ts';

const FRAME = 1920;
const OFFSET = 90_000;

function setUp(t: ExecutionContext, tracks: readonly Track[]) {
  const input = new InputStream('stream', { type: 'Rtmp', kind: 'rtmp' }, new Counters());
  const output = new OutputStream('stream', input);
  output.setTracks(tracks);
  addDefaultPlaylist(output);
  const ends: string[] = [];
  const feed = new TsFeed(output, ofDefaultTracks(output, { onEnd: () => ends.push('end') }));
  const sent: Packet[] = [];
  feed.attach({ packet: (packet) => void sent.push(packet) });
  t.teardown(() => feed.close('the test is over'));
  const found = () => analyse(Buffer.concat(sent.map(({ data }) => data)));
  const sound = (pid: number) =>
    (found().pes.get(pid) ?? []).map(({ pts, payload }) => ({
      pts,
      frames: [...adtsFrames(payload)].map((frame) => frame.payload),
    }));
  return { output, feed, sent, found, sound };
}

test('frames of sound go in groups, each with the time of its first, and none is lost', (t) => {
  const [video, audio] = [videoTrack(), audioTrack()];
  const { output, feed, found, sound, sent } = setUp(t, [video, audio]);
  const sounds = audioPackets(audio, { to: 2, bytes: 256 });
  for (const packet of interleaved(videoPackets(video, { to: 2 }).map(withNal), sounds)) output.write(packet);
  feed.close('the end');
  t.deepEqual(found().errors, []);
  const groups = sound(0x101);
  t.deepEqual(
    groups.flatMap(({ frames }) => frames),
    sounds.map(({ data }) => data),
  );
  t.true(groups.length <= Math.ceil(sounds.length / 4));
  let before = 0;
  for (const { pts, frames } of groups) {
    t.is(pts, OFFSET + before * FRAME);
    before += frames.length;
  }
  const bytes = sent.reduce((sum, { track, data }) => sum + (track.id === 1 ? data.length : 0), 0);
  t.true(bytes < 1.3 * sounds.reduce((sum, { data }) => sum + data.length, 0), `${bytes}`);
});

test('sound does not wait for long: pictures that go on send what is there', (t) => {
  const [video, audio] = [videoTrack(), audioTrack()];
  const { output, sound } = setUp(t, [video, audio]);
  output.write(audioPackets(audio, { to: 1 })[0] as Packet);
  for (const packet of videoPackets(video, { to: 0.2 }).map(withNal)) output.write(packet);
  t.deepEqual(
    sound(0x101).map(({ pts }) => pts),
    [OFFSET],
  );
});

test('audio after a gap has its own time', (t) => {
  const audio = audioTrack();
  const { output, feed, sound } = setUp(t, [audio]);
  for (const packet of audioPackets(audio, { to: 1 }).filter((_, at) => at !== 2 && at !== 3)) output.write(packet);
  feed.close('the end');
  t.deepEqual(
    sound(0x100)
      .slice(0, 2)
      .map(({ pts, frames }) => [pts, frames.length]),
    [
      [OFFSET, 2],
      [OFFSET + 4 * FRAME, 4],
    ],
  );
});

test('a change of tracks sends what waits, and a sound with another configuration begins a group of its own', (t) => {
  const [video, audio] = [videoTrack(), audioTrack()];
  const other = audioTrack({ config: Buffer.from(AAC_LC) });
  const { output, sound } = setUp(t, [audio]);
  const [one, two, three, four] = audioPackets(audio, { to: 1 }) as [Packet, Packet, Packet, Packet];
  output.write(one);
  output.write({ ...two, track: other });
  t.is(sound(0x100).length, 1);
  output.setTracks([video, other]);
  t.is(sound(0x100).length, 2);
  for (const packet of [three, four]) output.write({ ...packet, track: other });
  t.is(sound(0x100).length, 2);
});
