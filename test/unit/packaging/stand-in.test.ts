import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import { silentPacket } from '../../../src/codecs/silence.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import {
  AAC_SSR,
  audioPackets,
  audioTrack,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../support/media/packets.ts';
import { mediaTime, startSegmenter } from '../../support/media/segmenter.ts';

const video = videoTrack();
const sound = audioTrack();
const SILENCE = silentPacket(sound) as Buffer;
const FROM = 15;
const TO = 35;

const isAway = (packet: Packet) => mediaTime(packet) >= FROM && mediaTime(packet) < TO;
const parts = (segments: readonly Segment[]) => segments.flatMap((segment) => segment.parts);

/** Key frames that decoders can start at, and others. */
function pictures(to: number): Packet[] {
  return videoPackets(video, { to, gop: 60, bytes: 40 }).map((packet) => {
    packet.data.writeUInt32BE(36);
    packet.data[4] = packet.key ? 0x65 : 0x41;
    return packet;
  });
}

/** Up to when there is something of a track that players can have, in seconds. */
function reached(segments: readonly Segment[], den: number): number {
  const last = parts(segments).at(-1);
  if (last === undefined) return 0;
  const { baseTime, duration } = parseFragment(last.data);
  return (baseTime + duration) / den;
}

function assertTouching(t: import('ava').ExecutionContext, segments: readonly Segment[]): void {
  let end: number | undefined;
  for (const { data } of parts(segments)) {
    const { baseTime, duration } = parseFragment(data);
    if (end !== undefined) t.is(baseTime, end);
    end = baseTime + duration;
  }
}

test('audio that pauses: silence comes in its place before players have no more, and it is in sync afterwards', (t) => {
  const { segmenter, segments, faults } = startSegmenter([video, sound]);
  const heard = audioPackets(sound, { to: 60 }).filter((packet) => !isAway(packet));
  for (const packet of interleaved(pictures(60), heard)) {
    segmenter.push(packet);
    const behind = reached(segments(0), 90_000) - reached(segments(1), 48_000);
    t.true(behind < 1.5, `${behind} s behind at ${mediaTime(packet)}`);
  }
  segmenter.finish();
  t.true(segments(1).every(({ gap, duration }) => !gap && Math.abs(duration - 2) < 0.05));
  t.deepEqual(
    segments(1).map(({ msn }) => msn),
    segments(0).map(({ msn }) => msn),
  );
  assertTouching(t, segments(1));
  const times = new Map<number, Buffer>();
  for (const { data } of parts(segments(1))) {
    const { baseTime, samples, payload } = parseFragment(data);
    let [at, from] = [baseTime, 0];
    for (const { duration, size } of samples) {
      times.set(at, payload.subarray(from, from + size));
      at += duration;
      from += size;
    }
  }
  for (const { dts, data } of heard.filter((packet) => mediaTime(packet) > TO + 0.05))
    t.deepEqual(times.get(dts), data);
  t.true([...times].every(([at, data]) => at / 48_000 < FROM || at / 48_000 > TO || data.equals(SILENCE)));
  t.deepEqual(faults(), []);
});

test('a pause of one of several audio tracks leaves the others as they were', (t) => {
  const other = audioTrack({ id: 3, name: 'other' });
  const { push, segments } = startSegmenter([video, sound, other]);
  push(
    interleaved(
      pictures(40),
      audioPackets(sound, { to: 40 }),
      audioPackets(other, { to: 40 }).filter((packet) => !isAway(packet)),
    ),
  );
  const bytes = (id: number) => segments(id).map((segment) => segment.bytes);
  t.true(bytes(1).every((count) => count > 4000));
  t.true(segments(3).every(({ gap }) => !gap));
  t.true(
    bytes(3)
      .slice(8, 17)
      .every((count) => count < 4000),
  );
});

test('audio that is late as usual is waited for', (t) => {
  const { segmenter, segments } = startSegmenter([video, sound]);
  const late = 3;
  const at = (packet: Packet) => mediaTime(packet) + (packet.track.type === 'audio' ? late : 0);
  const all = [...pictures(30), ...audioPackets(sound, { to: 30 - late })].sort((one, two) => at(one) - at(two));
  for (const packet of all) segmenter.push(packet);
  t.true(parts(segments(1)).every(({ data }) => !data.includes(SILENCE)));
});

test('audio without a silence of its own shows gaps', (t) => {
  const odd = audioTrack({ config: AAC_SSR });
  const { push, segments } = startSegmenter([video, odd]);
  push(
    interleaved(
      pictures(40),
      audioPackets(odd, { to: 40 }).filter((packet) => !isAway(packet)),
    ),
  );
  t.is(segments(1).at(-1)?.msn, segments(0).at(-1)?.msn);
  t.true(segments(1).filter(({ gap }) => gap).length >= 7);
});

test('video that pauses: its last key frame stands in its place, and the next one ends that', (t) => {
  const { segmenter, segments, packager } = startSegmenter([video, sound]);
  const seen = pictures(60).filter((packet) => !isAway(packet));
  for (const packet of interleaved(seen, audioPackets(sound, { to: 60 }))) {
    segmenter.push(packet);
    const behind = reached(segments(1), 48_000) - reached(segments(0), 90_000);
    t.true(behind < 5, `${behind} s behind at ${mediaTime(packet)}`);
  }
  segmenter.finish();
  for (const id of [0, 1]) {
    t.true(segments(id).every(({ gap, discontinuity }) => !gap && !discontinuity));
    // it is not known at once that the video has stopped
    t.true(segments(id).every(({ duration }, at) => duration < (at === 7 ? 5.1 : 3.6)));
    assertTouching(t, segments(id));
  }
  t.is(packager(0).partTarget, 0.5);
  const shown: { at: number; data: Buffer }[] = [];
  for (const { data } of parts(segments(0))) {
    const { baseTime, samples, payload } = parseFragment(data);
    let [at, from] = [baseTime, 0];
    for (const { duration, size, offset = 0 } of samples) {
      shown.push({ at: at + offset, data: payload.subarray(from, from + size) });
      at += duration;
      from += size;
    }
  }
  const still = seen.findLast((packet) => packet.key && mediaTime(packet) < FROM)?.data;
  t.true(
    shown
      .filter(({ at }) => at >= FROM * 90_000 && at < TO * 90_000 - 1)
      .every(({ data }) => data.equals(still as Buffer)),
  );
  // what follows the pause up to the next key frame cannot follow the still
  const back = seen.filter((packet) => mediaTime(packet) >= 36);
  t.deepEqual(
    shown.filter(({ at }) => at >= 36 * 90_000).map(({ at }) => at),
    back.map(({ pts }) => pts),
  );
});

test('a rendition that is away alone shows gaps: players have another one', (t) => {
  const small = videoTrack({ id: 4, name: 'small', bypass: false });
  const { push, segments } = startSegmenter([video, small, sound]);
  const encoded = pictures(60).map((packet) => ({ ...packet, track: small }));
  push(
    interleaved(
      pictures(60),
      encoded.filter((packet) => !isAway(packet)),
      audioPackets(sound, { to: 60 }),
    ),
  );
  t.true(segments(4).filter(({ gap }) => gap).length >= 7);
  t.true(segments(0).every(({ gap }) => !gap));
});

test('audio that leaves the stream, and one that the next publisher does not have, goes on as silence', (t) => {
  const { segmenter, segments, push, packager } = startSegmenter([video, sound]);
  const heard = packager(1);
  push(interleaved(pictures(8), audioPackets(sound, { to: 8 })));
  segmenter.setTracks([video]);
  push(pictures(16).filter((packet) => mediaTime(packet) >= 8));
  segmenter.finish();
  segmenter.setTracks([videoTrack()]);
  push(pictures(10));
  t.is(packager(1), heard);
  t.deepEqual(
    segments(1).map(({ msn, discontinuity }) => [msn, discontinuity]),
    segments(0).map(({ msn, discontinuity }) => [msn, discontinuity]),
  );
  t.true(segments(1).every(({ gap }) => !gap));
  segmenter.setTracks([]);
  t.is(segmenter.packagers.size, 0);
});

test('a stream goes on as audio alone where its video has left before its publisher returns', (t) => {
  const { segmenter, segments, push } = startSegmenter([video, sound]);
  push(interleaved(pictures(8), audioPackets(sound, { to: 8 })));
  segmenter.finish();
  segmenter.setTracks([sound]);
  push(audioPackets(sound, { to: 10 }));
  t.is(segments(1).at(-1)?.msn, 8);
  t.true(segments(0).every(({ gap }) => !gap));
  t.is(segments(0).at(-1)?.msn, 8);
});
