import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import {
  AAC_SSR,
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../support/media/packets.ts';
import { arriving, mediaTime, startSegmenter as start } from '../../support/media/segmenter.ts';

const durations = (segments: readonly Segment[]) => segments.map(({ duration }) => Math.round(duration * 1000) / 1000);
const parts = (segments: readonly Segment[]) => segments.flatMap((segment) => segment.parts);

/** Every part begins where the one before ended, and says its duration truly. */
function assertContinuous(t: import('ava').ExecutionContext, segments: readonly Segment[], den: number): void {
  let end: number | undefined;
  for (const { data, duration } of parts(segments)) {
    const fragment = parseFragment(data);
    if (end !== undefined) t.is(fragment.baseTime, end);
    end = fragment.baseTime + fragment.duration;
    t.true(Math.abs(fragment.duration / den - duration) < 1e-9);
  }
}

test('a part closes with its last frame, without waiting for the next', (t) => {
  const video = videoTrack();
  const { push, packager } = start([video]);
  const packets = videoPackets(video, { to: 2 });
  push(packets.slice(0, 14));
  t.is(packager(0).window.open?.parts.length, 0);
  push(packets.slice(14, 15));
  t.is(packager(0).window.open?.parts.length, 1);
  t.is(packager(0).window.open?.parts[0]?.duration, 0.5);
});

test('segments begin at key frames once their time is reached', (t) => {
  const video = videoTrack();
  const { push, segments, segmenter } = start([video]);
  push(videoPackets(video, { to: 10, gop: 30 }));
  t.deepEqual(durations(segments(0)), [2, 2, 2, 2, 2]);
  t.true(segments(0).every(({ parts: [first] }) => first?.independent));
  t.deepEqual(
    segments(0).map(({ msn }) => msn),
    [0, 1, 2, 3, 4],
  );
  t.is(segmenter.targetDuration, 2);
  assertContinuous(t, segments(0), 90_000);
});

test('the first segments may be short: each lasts no longer than the two before it together', (t) => {
  for (const [gop, most, lasted] of [
    [30, 6, [1, 1, 2, 3, 5, 6, 6]],
    [60, 6, [2, 2, 4, 6, 6]],
    [30, 2, [1, 1, 2, 2, 2]],
    [60, 4, [2, 2, 4, 4]],
  ] as const) {
    const video = videoTrack();
    const { push, segments, segmenter } = start([video], { segmentDuration: most, firstSegmentDuration: 1 });
    push(videoPackets(video, { to: lasted.reduce((sum, seconds) => sum + seconds, 0), gop }));
    t.deepEqual(durations(segments(0)), [...lasted]);
    t.is(segmenter.targetDuration, most);
  }
});

test('first segments are short again when the stream goes on after an end', (t) => {
  const video = videoTrack();
  const { push, segments, segmenter } = start([video], { segmentDuration: 6, firstSegmentDuration: 1 });
  push(videoPackets(video, { to: 14, gop: 30 }));
  segmenter.finish();
  push(videoPackets(video, { from: 100, to: 107, gop: 30 }));
  t.deepEqual(durations(segments(0)), [1, 1, 2, 3, 5, 2, 1, 1, 2, 3]);
});

test('a playlist keeps more segments where they are short, until they last three targets', (t) => {
  const video = videoTrack();
  const { segmenter, packager } = start([video], { segmentDuration: 6, firstSegmentDuration: 1, segmentCount: 3 });
  const { window } = packager(0);
  const seconds = (): number => window.listed.reduce((sum, { duration }) => sum + duration, 0);
  for (const packet of videoPackets(video, { to: 60, gop: 30 })) {
    const before = seconds();
    segmenter.push(packet);
    t.true(seconds() >= Math.min(before, 18), `${seconds()}`);
  }
  t.deepEqual(durations(window.listed), [6, 6, 6]);
});

test('however short segments are, a playlist does not grow without end', (t) => {
  const video = videoTrack();
  const { segmenter, packager } = start([video], { segmentDuration: 6, segmentCount: 3 });
  for (const packet of videoPackets(video, { to: 10, gop: 1 })) {
    segmenter.push(packet);
    segmenter.finish();
  }
  t.is(packager(0).window.listed.length, 12);
});

test('a key frame interval that does not fit makes longer segments, which the target covers before they end', (t) => {
  const video = videoTrack();
  const { push, segments, segmenter } = start([video]);
  push(videoPackets(video, { to: 1.6, gop: 45 }));
  t.is(segmenter.targetDuration, 3);
  push(videoPackets(video, { from: 1.6, to: 9, gop: 45 }));
  t.deepEqual(durations(segments(0)), [3, 3, 3]);
});

test('timestamps in milliseconds make parts of exactly the chunk duration', (t) => {
  const video = videoTrack();
  const { push, segments } = start([video]);
  const rounded = videoPackets(video, { to: 8 }).map((packet) => {
    const dts = Math.round(packet.dts / 90) * 90;
    return { ...packet, dts, pts: dts };
  });
  push(rounded);
  t.deepEqual([...new Set(parts(segments(0)).map(({ duration }) => Math.round(duration * 1000)))], [500]);
  t.true(parts(segments(0)).every(({ duration }) => duration <= 0.5));
  assertContinuous(t, segments(0), 90_000);
});

for (const framerate of [10, 15, 24, 25, 29.97, 50, 59.94]) {
  test(`no part at ${framerate} frames a second is longer than the target, and none but a last one shorter than 85 %`, (t) => {
    const video = videoTrack({ framerate });
    const sound = audioTrack();
    const { push, segments, packager } = start([video, sound], { chunkDuration: 0.25 });
    push(
      interleaved(
        videoPackets(video, { to: 12, framerate, gop: Math.round(framerate) }),
        audioPackets(sound, { to: 12 }),
      ),
    );
    for (const id of [0, 1]) {
      const { partTarget } = packager(id);
      t.true(partTarget < 0.25 + 1 / framerate);
      for (const segment of segments(id)) {
        segment.parts.forEach(({ duration }, index) => {
          t.true(duration <= partTarget + 1e-9);
          if (index < segment.parts.length - 1) t.true(duration >= 0.85 * partTarget, `${duration} of ${partTarget}`);
        });
      }
    }
  });
}

test('an unknown frame rate is learned', (t) => {
  const video = videoTrack({ framerate: 0 });
  const { push, segments } = start([video]);
  push(videoPackets(video, { to: 8, framerate: 50, gop: 100 }));
  t.deepEqual(durations(segments(0).slice(1)), [2, 2, 2]);
  t.deepEqual(
    parts(segments(0).slice(1)).map(({ duration }) => duration),
    Array(12).fill(0.5),
  );
});

test('presentation times stay exact with B-frames', (t) => {
  const video = videoTrack();
  const { push, segments } = start([video]);
  const order = [2, 5, 3, 4, 8, 6, 7, 11, 9, 10, 14, 12, 13, 17, 15, 16];
  const packets = videoPackets(video, { to: 16 / 30, gop: 100 }).map((packet, index) => ({
    ...packet,
    pts: (order[index] as number) * 3000,
  }));
  push(packets);
  const [part] = parts(segments(0));
  const { samples, baseTime } = parseFragment(part?.data as Buffer);
  let decode = baseTime;
  const shown = samples.map(({ duration, offset }) => (decode += duration) - duration + (offset as number));
  t.deepEqual(
    shown,
    packets.slice(0, 15).map(({ pts }) => pts),
  );
});

test('sound follows the cuts of the picture, with the same numbers and parts', (t) => {
  const video = videoTrack();
  const sound = audioTrack();
  const { push, segments } = start([video, sound]);
  push(interleaved(videoPackets(video, { to: 10.2 }), audioPackets(sound, { to: 10.2 })));
  t.deepEqual(
    segments(1).map(({ msn }) => msn),
    segments(0).map(({ msn }) => msn),
  );
  let end = 0;
  for (const segment of segments(1).slice(0, -1)) {
    t.is(segment.parts.length, 4);
    end += segment.duration;
    t.true(Math.abs(end - (segment.msn + 1) * 2) < 0.022);
  }
  assertContinuous(t, segments(1), 48_000);
});

test('sound before the first key frame is left out', (t) => {
  const video = videoTrack();
  const sound = audioTrack();
  const { push, segments } = start([video, sound]);
  push(interleaved(videoPackets(video, { from: 0.5, to: 4 }), audioPackets(sound, { to: 4 })));
  const first = parseFragment(parts(segments(1))[0]?.data as Buffer);
  t.true(Math.abs(first.baseTime / 48_000 - 1) < 0.022);
  t.is(parseFragment(parts(segments(0))[0]?.data as Buffer).baseTime, 90_000);
});

test('a stream of sound alone is cut by time', (t) => {
  const sound = audioTrack();
  const { push, segments } = start([sound]);
  push(audioPackets(sound, { to: 10 }));
  t.true(segments(1).length === 5);
  for (const { duration } of segments(1).slice(0, -1)) t.true(Math.abs(duration - 2) < 0.022);
  assertContinuous(t, segments(1), 48_000);
});

test('Opus packets have their own durations', (t) => {
  const sound = audioTrack({ codec: 'OPUS', config: Buffer.from('000201380000bb80000000', 'hex') });
  const { push, segments } = start([sound]);
  const TWENTY_MS = 0xfc;
  push(
    audioPackets(sound, { to: 4 }).map((packet, index) => ({
      ...packet,
      dts: index * 960,
      pts: index * 960,
      data: Buffer.of(TWENTY_MS, 1, 2),
    })),
  );
  t.deepEqual([...new Set(parts(segments(1)).map(({ duration }) => duration))], [0.5]);
  t.is(segments(1)[0]?.init.codec, 'opus');
});

test('a stream without key frames is cut all the same', (t) => {
  const video = videoTrack();
  const { push, segments } = start([video], { segmentCount: 3 });
  push(videoPackets(video, { to: 200, gop: 1_000_000 }));
  t.true(segments(0).length >= 3);
  t.true(segments(0).every(({ duration }) => duration <= 30.01));
  t.true(
    segments(0)
      .slice(1)
      .every(({ parts: [first] }) => first?.independent === false),
  );
});

test('a segment is cut when its bytes reach the limit', (t) => {
  const video = videoTrack();
  const { push, segments } = start([video], { segmentCount: 3 });
  const data = Buffer.alloc(4 * 1024 * 1024);
  push(videoPackets(video, { to: 2, gop: 1_000_000 }).map((packet) => ({ ...packet, data })));
  t.true(segments(0).length > 2);
  t.true(segments(0).every(({ bytes }) => bytes <= 70 * 1024 * 1024));
});

test('timestamps that hardly grow make no endless part', (t) => {
  const video = videoTrack();
  const { push, segments } = start([video]);
  const [first] = videoPackets(video, { to: 0.1 });
  for (let tick = 0; tick < 20_000; tick++) push([{ ...(first as Packet), dts: tick, pts: tick, key: tick === 0 }]);
  t.true(parts(segments(0)).length >= 4);
  for (const { data } of parts(segments(0))) t.true(parseFragment(data).samples.length <= 4096);
});

test('the window holds what is listed, one segment more and the growing one', (t) => {
  const video = videoTrack();
  const { push, packager } = start([video], { segmentCount: 3 });
  const { window } = packager(0);
  let evicted = 0;
  window.on('evicted', () => evicted++);
  push(videoPackets(video, { to: 20.1 }));
  t.is(window.listed.length, 3);
  t.is(window.kept.length, 4);
  t.is(evicted, 10 - 4);
  const held = [...window.kept, ...(window.open === undefined ? [] : [window.open])];
  t.is(
    window.bytes,
    held.reduce((sum, { bytes }) => sum + bytes, 0),
  );
});

test('a new configuration begins a segment with another init, after a discontinuity on every track', (t) => {
  const video = videoTrack();
  const changed = videoTrack({ config: AVC_HIGH, width: 1280, height: 720 });
  const sound = audioTrack();
  const { push, segments, segmenter } = start([video, sound]);
  push(interleaved(videoPackets(video, { to: 3 }), audioPackets(sound, { to: 3 })));
  segmenter.setTracks([changed, sound]);
  push(interleaved(videoPackets(changed, { from: 3, to: 6.1 }), audioPackets(sound, { from: 3, to: 6.1 })));
  t.deepEqual(
    segments(0).map(({ discontinuity }) => discontinuity),
    [false, false, true, false],
  );
  t.deepEqual(
    segments(1).map(({ discontinuity }) => discontinuity),
    [false, false, true, false],
  );
  t.deepEqual(
    segments(0).map(({ init }) => init.version),
    [0, 0, 1, 1],
  );
  t.deepEqual(
    segments(1).map(({ init }) => init.version),
    [0, 0, 0, 0],
  );
  t.is(segments(0)[2]?.init.codec, 'avc1.64001f');
  t.deepEqual(durations(segments(0)).slice(0, 3), [2, 1, 2]);
});

test('frames other than a key frame wait after a change of configuration', (t) => {
  const video = videoTrack();
  const changed = videoTrack({ config: AVC_HIGH });
  const { push, segments } = start([video]);
  push(videoPackets(video, { to: 2.5 }));
  push(videoPackets(changed, { from: 2.5, to: 4.1 }));
  const first = segments(0).find(({ init }) => init.version === 1);
  t.true(first?.parts[0]?.independent);
  t.is(parseFragment(first?.parts[0]?.data as Buffer).baseTime, 3 * 90_000);
});

test('a track object with nothing new changes nothing', (t) => {
  const video = videoTrack();
  const { push, segments } = start([video]);
  push(videoPackets(video, { to: 3 }));
  push(videoPackets(videoTrack({ bitrate: 1_000_000 }), { from: 3, to: 6.1 }));
  t.true(segments(0).every(({ discontinuity, init }) => !discontinuity && init.version === 0));
});

test('a jump of the clock is one discontinuity on every track, forward and back', (t) => {
  for (const jump of [1000, -2]) {
    const video = videoTrack();
    const sound = audioTrack();
    const { push, segments } = start([video, sound]);
    const moved = (packets: Packet[]) =>
      packets.map((packet) => {
        const ticks = jump * (packet.track as typeof video).timebase.den;
        return { ...packet, dts: packet.dts + ticks, pts: packet.pts + ticks };
      });
    push(interleaved(videoPackets(video, { to: 4 }), audioPackets(sound, { to: 4 })));
    push(moved(interleaved(videoPackets(video, { from: 4, to: 8 }), audioPackets(sound, { from: 4, to: 8 }))));
    for (const id of [0, 1]) {
      t.is(segments(id).filter(({ discontinuity }) => discontinuity).length, 1, `track ${id}, jump ${jump}`);
      const after = segments(id).find(({ discontinuity }) => discontinuity)?.parts[0]?.data as Buffer;
      t.true(Math.abs(parseFragment(after).baseTime / (id === 0 ? 90_000 : 48_000) - (4 + jump)) < 0.05);
    }
  }
});

test('a source that starts below zero is moved up by whole seconds, all tracks alike', (t) => {
  const video = videoTrack();
  const sound = audioTrack();
  const { push, segments } = start([video, sound]);
  const early = (packets: Packet[]) =>
    packets.map((packet) => {
      const ticks = 1.5 * (packet.track as typeof video).timebase.den;
      return { ...packet, dts: packet.dts - ticks, pts: packet.pts - ticks };
    });
  push(early(interleaved(videoPackets(video, { to: 3 }), audioPackets(sound, { to: 3 }))));
  t.is(parseFragment(parts(segments(0))[0]?.data as Buffer).baseTime, 45_000);
  t.true(Math.abs(parseFragment(parts(segments(1))[0]?.data as Buffer).baseTime - 24_000) < 1024);
});

test('packets that are not later than the one before are left out and counted', (t) => {
  const video = videoTrack();
  const { push, segments, faults } = start([video]);
  const packets = videoPackets(video, { to: 1.1 });
  push([...packets.slice(0, 10), ...packets.slice(5, 10), ...packets.slice(10)]);
  t.is(parseFragment(parts(segments(0))[0]?.data as Buffer).samples.length, 15);
  t.true(faults().some((line) => line.includes('not later')));
});

test('a hole in the picture ends the part before it and leaves the timeline true', (t) => {
  const video = videoTrack();
  const { push, segments } = start([video]);
  push([...videoPackets(video, { to: 1.2 }), ...videoPackets(video, { from: 3, to: 6.1 })]);
  const times = parts(segments(0)).map(({ data }) => parseFragment(data).baseTime / 90_000);
  t.true(times.some((time) => Math.abs(time - 3) < 1e-6));
  t.true(parts(segments(0)).every(({ duration }) => duration <= 0.5));
});

test('a track that is silent for long keeps its numbers in step by gaps', (t) => {
  const video = videoTrack();
  const sound = audioTrack({ config: AAC_SSR });
  const { push, segments } = start([video, sound]);
  push(
    interleaved(videoPackets(video, { to: 16 }), [
      ...audioPackets(sound, { to: 3 }),
      ...audioPackets(sound, { from: 11, to: 16 }),
    ]),
  );
  t.is(segments(1).at(-1)?.msn, segments(0).at(-1)?.msn);
  const gaps = segments(1).filter(({ gap }) => gap);
  t.true(gaps.length >= 2);
  t.true(gaps.every(({ duration }) => Math.abs(duration - 2) < 0.05));
  const resumed = segments(1).find(({ msn, parts: [first] }) => msn >= 5 && first !== undefined);
  t.true(Math.abs(parseFragment(resumed?.parts[0]?.data as Buffer).baseTime / 48_000 - 11) < 0.03);
});

test('a track that comes back late, as it was before, is waited for again', (t) => {
  const video = videoTrack();
  const sound = audioTrack();
  const { push, segments } = start([video, sound]);
  const [picture, late] = [videoPackets(video, { to: 40 }), audioPackets(sound, { to: 36.5 })];
  // 3 s behind the picture, and once as far as is waited for no longer
  const of = (packets: readonly Packet[], from: number, to: number): Packet[] =>
    packets.filter((packet) => mediaTime(packet) >= from && mediaTime(packet) < to);
  push([
    ...arriving([of(picture, 0, 10), 0], [of(late, 0, 7), 3]),
    ...of(picture, 10, 12.5),
    ...of(late, 7, 9.5),
    ...arriving([of(picture, 12.5, 40), 0], [of(late, 9.5, 36.5), 3]),
  ]);
  const missing = segments(1).filter(({ gap }) => gap);
  t.true(missing.length <= 3, `${missing.length} segments without sound`);
  for (const {
    msn,
    gap,
    parts: [first],
  } of segments(1)) {
    const begin = first && parseFragment(first.data).baseTime / 48_000;
    t.true(gap || begin === undefined || Math.abs(begin - 2 * msn) < 0.05, `segment ${msn} begins at ${begin}`);
  }
});

test('sound goes on being cut when the picture stops', (t) => {
  const video = videoTrack();
  const sound = audioTrack();
  const { push, segments } = start([video, sound]);
  push(interleaved(videoPackets(video, { to: 4 }), audioPackets(sound, { to: 200 })));
  t.true(segments(1).every(({ duration }) => duration <= 30.1));
  t.true(Math.abs((segments(1).at(-1)?.msn as number) - (segments(0).at(-1)?.msn as number)) <= 1);
});

test('a second rendition cuts at its own key frames, with the same numbers', (t) => {
  const big = videoTrack();
  const small = videoTrack({ id: 5, name: 'small' });
  const { push, segments } = start([big, small]);
  const late = videoPackets(small, { to: 12.2 }).map((packet) => ({
    ...packet,
    dts: packet.dts + 900,
    pts: packet.pts + 900,
  }));
  push(interleaved(videoPackets(big, { to: 12.2 }), late));
  t.deepEqual(
    segments(5).map(({ msn }) => msn),
    segments(0).map(({ msn }) => msn),
  );
  t.true(segments(5).every(({ parts: [first] }) => first === undefined || first.independent));
});

test('wall clock times are those of arrival, the same on all tracks, and stay once they were published', (t) => {
  const [video, audio] = [videoTrack(), audioTrack()];
  const { segmenter, push, segments } = start([video, audio], { segmentDuration: 1, firstSegmentDuration: 1 });
  let offset = Date.now() - 10_000;
  segmenter.setTracks([video, audio], { at: (media) => offset + media * 1000 });
  push(interleaved(videoPackets(video, { to: 0.5 }), audioPackets(audio, { to: 0.5 })));
  offset -= 800;
  const clocks = (id: number) =>
    segments(id).map(({ wallClock, presentation }) => Math.round(wallClock - presentation * 1000));
  t.deepEqual(clocks(0), [offset]);
  const seen = offset;
  offset -= 300;
  push(interleaved(videoPackets(video, { from: 0.5, to: 2.5 }), audioPackets(audio, { from: 0.5, to: 2.5 })));
  for (const id of [0, 1]) t.deepEqual(clocks(id), [seen, offset, offset]);
});

test('a track that cannot be packaged is left out with one warning', (t) => {
  const { segmenter, faults } = start([videoTrack({ codec: 'VP8', config: undefined }), audioTrack()]);
  segmenter.setTracks([videoTrack({ codec: 'VP8', config: undefined }), audioTrack()]);
  t.deepEqual([...segmenter.packagers.keys()], [1]);
  t.is(faults().filter((line) => line.includes('not included in HLS')).length, 1);
});

test('a timebase that cannot be is refused with the track', (t) => {
  for (const den of [0, -1, NaN, 2 ** 32]) {
    const { segmenter } = start([videoTrack(), audioTrack({ timebase: { num: 1, den } })]);
    t.deepEqual([...segmenter.packagers.keys()], [0]);
  }
});

test('a configuration that cannot be read loses its packets, not the stream', (t) => {
  const video = videoTrack();
  const sound = audioTrack();
  const { push, segments, faults } = start([video, sound]);
  push(interleaved(videoPackets(video, { to: 2 }), audioPackets(sound, { to: 2 })));
  push(videoPackets(videoTrack({ config: Buffer.from('0164', 'hex') }), { from: 2, to: 3 }));
  push(interleaved(videoPackets(video, { from: 3, to: 6 }), audioPackets(sound, { from: 3, to: 6 })));
  t.true(faults().some((line) => line.includes('cannot be packaged')));
  t.true((segments(0).at(-1)?.msn as number) >= 2);
});

test('a track that changes into one that cannot be packaged is gone, and the others go on undisturbed', (t) => {
  const video = videoTrack();
  const sound = audioTrack();
  const mp3 = audioTrack({ codec: 'MP3', config: undefined });
  const { segmenter, push, segments } = start([video, sound]);
  push(interleaved(videoPackets(video, { to: 4 }), audioPackets(sound, { to: 4 })));
  segmenter.setTracks([video, mp3]);
  push(interleaved(videoPackets(video, { from: 4, to: 10 }), audioPackets(mp3, { from: 4, to: 10 })));
  t.deepEqual([...segmenter.packagers.keys()], [0]);
  t.deepEqual(durations(segments(0)), [2, 2, 2, 2, 2]);
  t.true(segments(0).every(({ discontinuity }) => !discontinuity));
  segmenter.setTracks([video, sound]);
  push(interleaved(videoPackets(video, { from: 10, to: 14 }), audioPackets(sound, { from: 10, to: 14 })));
  const returned = segments(1).filter(({ gap }) => !gap);
  t.deepEqual(
    returned.map(({ msn }) => msn),
    [5, 6],
  );
  t.deepEqual(
    returned.map(({ init }) => init.version),
    [1, 1],
    'not under the name that players know',
  );
});

test('sound leads when the picture cannot be packaged any more', (t) => {
  const video = videoTrack();
  const vp8 = videoTrack({ codec: 'VP8', config: undefined });
  const sound = audioTrack();
  const { segmenter, push, segments } = start([video, sound]);
  push(interleaved(videoPackets(video, { to: 4 }), audioPackets(sound, { to: 4 })));
  segmenter.setTracks([vp8, sound]);
  push(interleaved(videoPackets(vp8, { from: 4, to: 10 }), audioPackets(sound, { from: 4, to: 10 })));
  t.deepEqual([...segmenter.packagers.keys()], [1]);
  t.true(segments(1).every(({ duration }) => duration < 2.5));
});

test('a stream whose last track was gone begins anew, with the next number', (t) => {
  const video = videoTrack();
  const { segmenter, push, segments } = start([video]);
  push(videoPackets(video, { to: 5 }));
  segmenter.setTracks([]);
  segmenter.setTracks([video]);
  push(videoPackets(video, { from: 60, to: 63 }));
  t.deepEqual(
    segments(0).map(({ msn }) => msn),
    [3, 4],
  );
  t.deepEqual(durations(segments(0)), [2, 1]);
  t.is(segmenter.targetDuration, 2);
});

test('segments begin at open key frames, and say that they depend; what is shown before the first is left out', (t) => {
  const video = videoTrack();
  const { push, segments, packager } = start([video], { segmentCount: 3 });
  const open = (packets: readonly Packet[]): Packet[] =>
    packets.map((packet, i) => {
      const key = i % 60 === 0 ? 'open' : false;
      // the two pictures behind each key frame are shown before it
      const pts = packet.dts + (i % 60 === 0 ? 9000 : i % 60 < 3 ? 0 : 6000);
      return { ...packet, key, pts };
    });
  const packets = open(videoPackets(video, { to: 6 }));
  push(packets);
  t.deepEqual(durations(segments(0)), [2, 2, 2]);
  t.true(parts(segments(0)).every(({ independent }) => !independent));
  t.false(packager(0).independent);
  const samples = parts(segments(0)).reduce((sum, { data }) => sum + parseFragment(data).samples.length, 0);
  t.is(samples, packets.length - 2);
  assertContinuous(t, segments(0), 90_000);
  push(videoPackets(video, { from: 6, to: 16 }));
  t.true(packager(0).independent);
});
