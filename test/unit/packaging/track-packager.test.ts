import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import type { Cut } from '../../../src/packaging/cut.ts';
import { FRAGMENTS } from '../../../src/packaging/part-form.ts';
import { TrackPackager } from '../../../src/packaging/track-packager.ts';
import { WallTime } from '../../../src/packaging/wall-time.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import { audioPackets, audioTrack, AVC_HIGH, videoPackets, videoTrack } from '../../support/media/packets.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const CLOCK = new WallTime({ at: (media) => media * 1000 }, 0, Infinity);

/** A cut of the other tracks, on the timeline of the packets. */
function cutAt(msn: number, time: number, how: 'jump' | 'change' | 'continues' = 'continues'): Cut {
  const discontinuity = how !== 'continues';
  const discontinuities = discontinuity ? 1 : 0;
  return { msn, time, slack: 0, discontinuity, jump: how === 'jump', discontinuities, wallTime: CLOCK, shift: 0 };
}

interface Started {
  readonly packager: TrackPackager;
  /** Packages frames from one time to another, in seconds. */
  frames(from: number, to: number, gop?: number): void;
  push(packets: readonly Packet[]): void;
}

/** A packager whose first segment began at 0. @param nextCut media time of the next cut, in seconds */
function started(track: MediaTrack, nextCut?: () => number): Started {
  const limits = {
    segmentCount: 10,
    leastSeconds: () => 6,
    chunkDuration: 0.5,
    videoTarget: () => 0.5,
    nextCut: nextCut ?? (() => undefined),
  };
  const packager = new TrackPackager(track, limits, FRAGMENTS, 0);
  packager.start(cutAt(0, 0));
  const push = (packets: readonly Packet[]): void => packets.forEach((packet) => packager.push(packet));
  const frames = (from: number, to: number, gop = 60): void =>
    push(track.type === 'video' ? videoPackets(track, { from, to, gop }) : audioPackets(track, { from, to }));
  return { packager, frames, push };
}

/** A packager that the others no longer wait for, in segment 1 from 2 s on. */
function absent(track: MediaTrack): Started {
  const all = started(track);
  all.frames(0, 1);
  all.packager.cut(cutAt(1, 2));
  all.packager.expire(1);
  return all;
}

/** Decode times of the packaged frames of a segment's parts and of all complete ones, in seconds. */
function times({ window, track }: TrackPackager): number[] {
  const segments = [...window.kept, ...(window.open === undefined ? [] : [window.open])];
  return segments.flatMap(({ parts }) =>
    parts.flatMap(({ data }) => {
      const { baseTime, samples } = parseFragment(data);
      let at = baseTime;
      return samples.map(({ duration }) => ((at += duration) - duration) / track.timebase.den);
    }),
  );
}

test('a track packager in step cuts video at its key frame, and audio at any frame', (t) => {
  for (const track of [VIDEO, AUDIO]) {
    const { packager, frames } = started(track);
    frames(0, 1.8);
    packager.cut(cutAt(1, 2));
    t.true(packager.behind);
    t.is(packager.msn, 0);
    frames(1.8, 2.1);
    t.false(packager.behind);
    t.is(packager.msn, 1);
  }
});

test('a track packager is in step until it is past a new cut, ahead until it is not: only in step the last part of a segment is predicted', (t) => {
  let next = 2;
  const { packager, frames } = started(AUDIO, () => next);
  const endsAt = (to: number): boolean => {
    const ends: boolean[] = [];
    packager.window.once('part', () => ends.push(packager.window.ending));
    frames(packager.lastTime === undefined ? 0 : packager.lastTime + 0.02, to);
    return packager.window.ending;
  };
  t.true(endsAt(2));
  packager.cut(cutAt(1, 2));
  next = 4;
  frames(2, 3.9);
  t.true(endsAt(4), 'in step');
  frames(4, 5);
  packager.cut(cutAt(2, 4));
  next = 6;
  t.false(endsAt(6), 'ahead');
  packager.cut(cutAt(3, 6));
  next = 8;
  t.true(endsAt(8), 'in step again');
});

test('absent when the others have waited for its media: segments begin with theirs', (t) => {
  const { packager } = absent(VIDEO);
  t.is(packager.msn, 1);
  packager.cut(cutAt(2, 4));
  t.false(packager.behind);
  t.is(packager.msn, 2);
});

test('absent when nothing of it came at all', (t) => {
  const { packager } = started(VIDEO);
  packager.cut(cutAt(1, 2));
  packager.expire(1);
  packager.cut(cutAt(2, 4));
  t.is(packager.msn, 2);
});

test('a track packager is in step when the others have waited for a key frame, but frames come', (t) => {
  const { packager, frames } = started(VIDEO);
  frames(0, 1);
  packager.cut(cutAt(1, 2));
  frames(1, 5, 1000);
  packager.expire(1);
  t.is(packager.msn, 1);
  packager.cut(cutAt(2, 6));
  t.true(packager.behind);
});

test('a wait ends for the cuts up to a number, and for all of an absent track', (t) => {
  const { packager, frames } = started(VIDEO);
  frames(0, 1);
  packager.cut(cutAt(1, 2));
  frames(1, 5, 1000);
  packager.cut(cutAt(2, 6));
  packager.expire(1);
  t.is(packager.msn, 1);
  t.true(packager.behind);
  const waiting = started(VIDEO).packager;
  waiting.cut(cutAt(1, 2));
  waiting.cut(cutAt(2, 4));
  waiting.expire(1);
  t.is(waiting.msn, 2);
});

test('absent when it did not follow a jump, whatever its times are', (t) => {
  const { packager, frames } = started(VIDEO);
  frames(0, 5, 1000);
  packager.cut(cutAt(1, 2, 'jump'));
  t.true(packager.awaitsJump);
  packager.expire(1);
  t.is(packager.lastTime, undefined);
  packager.cut(cutAt(2, 4));
  t.is(packager.msn, 2);
});

test('absent: late are frames before the segment that the others have reached, but not after a jump', (t) => {
  const [before, after] = [videoPackets(VIDEO, { from: 1.5, to: 1.6 }), videoPackets(VIDEO, { from: 2.5, to: 2.6 })];
  const { packager } = absent(VIDEO);
  t.is(packager.inspect(before[0] as Packet), 'late');
  t.is(packager.inspect(after[0] as Packet), 'next');
  packager.cut(cutAt(2, 2, 'jump'));
  t.is(packager.inspect(before[0] as Packet), 'next');
});

test('absent and returning: what replaces missing media begins with the segment that the others have reached', (t) => {
  const { packager, frames } = absent(AUDIO);
  t.is(packager.standIn.packet()?.dts, 2 * 48_000);
  packager.missed(true);
  t.is(packager.standIn.packet()?.dts, 2 * 48_000);
  frames(2, 2.5);
  t.true((packager.standIn.packet()?.dts ?? 0) > 2.4 * 48_000);
});

test('returning when a late packet is near the others: they wait again, but not for a jump', (t) => {
  const { packager } = absent(VIDEO);
  packager.missed(true);
  packager.cut(cutAt(2, 4));
  t.true(packager.behind);
  packager.cut(cutAt(3, 2, 'jump'));
  t.is(packager.msn, 3);
});

test('absent again when a late packet is far from the others, or they have waited again', (t) => {
  const far = absent(VIDEO).packager;
  far.missed(true);
  far.missed(false);
  far.cut(cutAt(2, 4));
  t.is(far.msn, 2);
  const expired = absent(VIDEO).packager;
  expired.missed(true);
  expired.cut(cutAt(2, 4));
  expired.cut(cutAt(3, 6));
  expired.expire(2);
  t.is(expired.msn, 3, 'the third, too: it is absent');
});

test('returning: a wait ends only for the cuts up to a number', (t) => {
  const { packager } = absent(VIDEO);
  packager.missed(true);
  packager.cut(cutAt(2, 4));
  packager.expire(1);
  t.is(packager.msn, 1);
});

test('a track packager is in step again with the first frame after absence, and with that of a returning track', (t) => {
  for (const returning of [false, true]) {
    const { packager, frames } = absent(VIDEO);
    if (returning) packager.missed(true);
    frames(2, 2.5);
    packager.cut(cutAt(2, 4));
    t.true(packager.behind);
    packager.cut(cutAt(3, 2, 'jump'));
    t.is(packager.msn, 1, 'it waits for the jump');
  }
});

test('a track packager is in step again after an end', (t) => {
  for (const returning of [false, true]) {
    const { packager } = absent(VIDEO);
    if (returning) packager.missed(true);
    packager.finish();
    packager.start(cutAt(2, 50));
    packager.cut(cutAt(3, 52, 'jump'));
    t.is(packager.msn, 2);
  }
});

test('a track packager is in step again when it breaks the timeline: the cut waits for its key frame', (t) => {
  const { packager, frames } = absent(VIDEO);
  packager.break();
  packager.cut(cutAt(2, 100.5, 'jump'));
  t.is(packager.msn, 1);
  frames(100.5, 102);
  t.is(packager.msn, 1);
  frames(102, 102.5);
  t.is(packager.msn, 2);
});

test('needs a key frame at the beginning, after an end, and after a dropped packet of an absent track', (t) => {
  const begin = started(VIDEO);
  begin.frames(0.5, 3.1);
  t.is(times(begin.packager)[0], 2);
  const ended = started(VIDEO);
  ended.frames(0, 1);
  ended.packager.finish();
  ended.packager.start(cutAt(1, 10));
  ended.frames(10.5, 13);
  t.is(
    times(ended.packager).find((time) => time > 9),
    12,
  );
  const dropped = absent(VIDEO);
  dropped.packager.missed(false);
  dropped.frames(2.5, 5);
  t.is(
    times(dropped.packager).find((time) => time > 2),
    4,
  );
  const other = started(VIDEO);
  other.frames(0, 1);
  other.packager.missed(false);
  other.frames(1, 1.5);
  t.is(times(other.packager).length, 45, 'of a track that is not absent, later frames do not depend on it');
});

test('needs a key frame after frames that were replaced', (t) => {
  const { packager, frames, push } = started(VIDEO);
  frames(0, 1);
  const [key] = videoPackets(VIDEO, { to: 0.04 });
  packager.push({ ...(key as Packet), dts: 90_000, pts: 90_000, duration: 45_000 }, true);
  push(videoPackets(VIDEO, { from: 1.5, to: 1.9 }));
  t.is(packager.lastTime, 1);
  push(videoPackets(VIDEO, { from: 1.9, to: 2.1 }));
  t.true((packager.lastTime ?? 0) > 2);
});

test('the next key frame after a break begins the pending segment, whatever its time', (t) => {
  const { packager, frames } = started(VIDEO);
  frames(0, 3);
  packager.cut(cutAt(1, 1.5, 'jump'));
  packager.break();
  frames(1.5, 2);
  t.is(packager.msn, 0);
  frames(2, 2.6);
  t.is(packager.msn, 1);
  t.is(parseFragment(packager.window.open?.parts[0]?.data as Buffer).baseTime, 2 * 90_000);
});

test('audio after a break continues with any frame, at its own time', (t) => {
  const { packager, frames } = started(AUDIO);
  frames(0, 3);
  packager.cut(cutAt(1, 1.5, 'jump'));
  packager.break();
  frames(1, 1.6);
  t.is(packager.msn, 1);
  t.true(Math.abs(parseFragment(packager.window.open?.parts[0]?.data as Buffer).baseTime / 48_000 - 1) < 0.03);
});

test('a break ends with its segment: frames before that are left out again', (t) => {
  const { packager, frames } = started(VIDEO);
  frames(0, 3);
  packager.cut(cutAt(1, 100, 'jump'));
  packager.break();
  packager.expire(1);
  t.is(packager.msn, 1);
  frames(98, 98.5);
  t.is(times(packager).length, 90, 'a key frame of 98 s is too early');
  frames(100, 101);
  t.true(times(packager).includes(100));
});

test('a break ends with an end: frames before the next beginning are left out', (t) => {
  for (const adopts of [false, true]) {
    const { packager, push } = started(VIDEO);
    const track = adopts ? videoTrack({ config: AVC_HIGH }) : VIDEO;
    push(videoPackets(VIDEO, { to: 1 }));
    packager.cut(cutAt(1, 100, 'jump'));
    packager.break();
    packager.finish();
    packager.adopt(track);
    packager.start(cutAt(2, 50));
    t.is(packager.init.version, adopts ? 1 : 0);
    push(videoPackets(track, { from: 48, to: 49 }));
    t.false(times(packager).some((time) => time > 10));
    push(videoPackets(track, { from: 50, to: 51 }));
    t.true(times(packager).includes(50));
  }
});

test('a new configuration is a break: its first key frame begins the pending segment, with its initialization', (t) => {
  const { packager, frames, push } = started(VIDEO);
  const changed = videoTrack({ config: AVC_HIGH });
  frames(0, 1.25);
  packager.cut(cutAt(1, 1.5, 'change'));
  packager.break();
  push(videoPackets(changed, { from: 1.25, to: 2.6, gop: 60 }));
  t.is(packager.window.kept[0]?.init.version, 0);
  t.is(packager.window.open?.init.version, 1);
  t.is(parseFragment(packager.window.open?.parts[0]?.data as Buffer).baseTime, 2 * 90_000);
  t.is(times(packager).filter((time) => time < 1.9).length, 38, 'frames before the change are kept');
});

test('a new configuration begins its segment also where its times are before the segment that grows', (t) => {
  const { packager, frames, push } = started(VIDEO);
  const changed = videoTrack({ config: AVC_HIGH });
  frames(0, 1.9);
  packager.cut(cutAt(1, 2));
  frames(2, 2.5);
  packager.cut(cutAt(2, 1, 'change'));
  packager.break();
  push(videoPackets(changed, { from: 1, to: 1.6, gop: 30 }));
  t.is(packager.msn, 2);
  t.is(packager.window.open?.init.version, 1);
  t.is(parseFragment(packager.window.open?.parts[0]?.data as Buffer).baseTime, 90_000);
});

test('a time within replaced media is no jump, until a real frame comes', (t) => {
  const { packager, frames, push } = started(VIDEO);
  const at = (seconds: number, key: boolean): Packet => {
    const ticks = seconds * 90_000;
    return { track: VIDEO, dts: ticks, pts: ticks, duration: 45_000, key, data: Buffer.alloc(8) };
  };
  frames(0, 1);
  for (const time of [1, 1.5, 2, 2.5, 3]) packager.push(at(time, true), true);
  t.false(packager.jumps(at(1.2, true)));
  t.true(packager.jumps(at(0.5, true)));
  push([at(3.5, true)]);
  t.true(packager.jumps(at(1.2, true)));
});

test('media of a track that has left is replaced at once, also after an end, and that of another after a wait', (t) => {
  const { packager, frames } = started(AUDIO);
  const { standIn } = packager;
  frames(0, 1);
  t.false(standIn.isDue(1.5));
  t.true(standIn.isDue(2));
  standIn.stay(false);
  t.true(standIn.hasLeft && standIn.isActive && standIn.isDue(1.5));
  const [late] = audioPackets(AUDIO, { from: 1, to: 1.02 });
  packager.arrived(late as Packet, 1);
  standIn.stay(false);
  t.false(standIn.isActive, 'a late packet ends it, until it is due again');
  t.not(standIn.packet(), undefined);
  packager.finish();
  t.true(standIn.isActive);
  standIn.stay(true);
  t.false(standIn.hasLeft);
  packager.finish();
  t.false(standIn.isActive);
});
