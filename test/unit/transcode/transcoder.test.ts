import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { Transcoder } from '../../../src/transcode/transcoder.ts';
import { seeded } from '../codecs/vectors.ts';
import { until } from '../../support/until.ts';
import { audioEncoding, looped, makeClip, openInput, secondsOf, Taken, videoEncoding, type Clip } from './sources.ts';

const clip = makeClip();
const inventory = new CodecInventory({ log: pino({ level: 'silent' }) });

/** A transcoder on a live input. */
function open(t: ExecutionContext, source: Clip, hangMs?: number) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const input = openInput(source);
  const transcoder = new Transcoder(input, { inventory, decodes: { threadCount: 1, onlyKeyframes: false }, log, hangMs });
  t.teardown(() => transcoder.close());
  return { input, transcoder, lines };
}

/** Writes packets, never further ahead of what comes out than some seconds. */
async function feed(input: ReturnType<typeof openInput>, packets: Iterable<Packet>, takers: readonly Taken[], ahead = 6): Promise<void> {
  for (const packet of packets) {
    const at = secondsOf(packet);
    const isFar = () => takers.some(({ reached }) => at - reached > ahead);
    if (isFar()) await until(`what was fed comes out, at ${at}`, () => !isFar());
    input.write(packet);
  }
}

const times = ({ packets }: Taken) => packets.map(({ pts }) => pts);

/** Every picture that was fed came out once, in order, from the first one to the last one that came out. */
function isWhole(t: ExecutionContext, taken: Taken, packets: readonly Packet[]): void {
  const got = times(taken);
  const last = got.at(-1) as number;
  const fed = packets.filter(({ pts, track }) => track.id === taken.job.from.id && pts <= last).map(({ pts }) => pts);
  t.deepEqual(fed.filter((pts) => !got.includes(pts)), [], 'missing');
  t.deepEqual(got.filter((pts) => !fed.includes(pts)), [], 'out of nothing');
  t.is(got.length, fed.length, 'none twice');
  isOrdered(t, taken);
}

/** Sound without a gap, apart from the first packet, which would begin before the beginning. */
function isContinuous(t: ExecutionContext, taken: Taken): void {
  const [, ...got] = taken.packets;
  for (const [i, { pts, duration }] of got.entries()) {
    const next = got[i + 1];
    if (next !== undefined) t.is(next.pts - pts, duration, `packet ${i} at ${pts}`);
  }
  isOrdered(t, taken);
}

function isOrdered(t: ExecutionContext, { packets }: Taken): void {
  for (const [i, { dts, pts }] of packets.entries()) {
    t.true(dts <= pts);
    if (i > 0) t.true(dts > (packets[i - 1]?.dts as number));
  }
}

test('every frame comes out once with its time, sound without a gap, in what was asked for', async (t) => {
  const source = await clip;
  const { input, transcoder } = open(t, source);
  const high = new Taken(source.video, videoEncoding());
  const low = new Taken(source.video, videoEncoding({ width: 80, height: 48 }));
  const aac = new Taken(source.audio, audioEncoding());
  const opus = new Taken(source.audio, audioEncoding({ codec: 'OPUS' }));
  const all = [high, low, aac, opus];
  transcoder.setJobs(all.map(({ task }) => task));
  const packets = [...looped(source, 3)];
  await feed(input, packets, all);
  await until('all is out', () => all.every(({ reached }) => reached > 11.5));
  for (const taken of [high, low]) {
    t.is(taken.formats.length, 1);
    isWhole(t, taken, packets);
  }
  t.like(high.formats[0], { module: 'x264', width: 160, height: 88, timebase: { num: 1, den: 90_000 } });
  t.like(aac.formats[0], { module: 'aac', samplerate: 48_000, channels: 2, timebase: { num: 1, den: 48_000 } });
  for (const taken of [aac, opus]) isContinuous(t, taken);
  t.deepEqual(all.flatMap(({ failures }) => failures), []);
});

test('children that are killed at any time are started again, and nothing is missing', async (t) => {
  const kills = 8;
  const source = await clip;
  const { input, transcoder, lines } = open(t, source);
  const video = new Taken(source.video, videoEncoding());
  const aac = new Taken(source.audio, audioEncoding());
  const opus = new Taken(source.audio, audioEncoding({ codec: 'OPUS' }));
  const all = [video, aac, opus];
  transcoder.setJobs(all.map(({ task }) => task));
  const random = seeded(21);
  let killed = 0;
  let at = 0;
  const packets: Packet[] = [];
  function* fed() {
    for (const packet of looped(source, 1000)) {
      if (killed >= kills) return;
      packets.push(packet);
      yield packet;
    }
  }
  const feeding = feed(input, fed(), all);
  while (killed < kills) {
    at = video.reached;
    const next = random() * 5;
    await until('it goes on', () => video.reached > at + next && transcoder.pids.length > 0);
    for (const pid of transcoder.pids) process.kill(pid, 'SIGKILL');
    killed++;
  }
  await feeding;
  const end = secondsOf(packets.at(-1) as Packet) - 1;
  await until('all is out', () => all.every(({ reached }) => reached > end));
  isWhole(t, video, packets);
  for (const taken of [aac, opus]) isContinuous(t, taken);
  t.is(video.failures.length, kills);
  t.true(video.failures.every(({ reason, final }) => reason === 'ffmpeg has ended by SIGKILL' && !final));
  t.is(video.formats.length, kills + 1, 'it is told of every start');
  t.is(lines.length, kills);
});

test('one that stands still is found out, killed and started again, and nothing is missing', async (t) => {
  const source = await clip;
  const { input, transcoder } = open(t, source, 1500);
  const video = new Taken(source.video, videoEncoding());
  const aac = new Taken(source.audio, audioEncoding());
  transcoder.setJobs([video.task, aac.task]);
  const packets = [...looped(source, 8)];
  const feeding = feed(input, packets, [video, aac], 8);
  await until('it goes', () => video.reached > 3);
  const [pid] = transcoder.pids;
  process.kill(pid as number, 'SIGSTOP');
  await feeding;
  await until('all is out', () => video.reached > 31 && aac.reached > 31);
  t.regex(video.failures[0]?.reason ?? '', /^ffmpeg (puts out nothing|takes no input)$/);
  t.not(transcoder.pids[0], pid);
  t.throws(() => process.kill(pid as number, 0));
  isWhole(t, video, packets);
  isContinuous(t, aac);
});

test('other jobs: what was and still is goes on, what is new begins with a key frame, what is gone gets nothing', async (t) => {
  const source = await clip;
  const { input, transcoder } = open(t, source);
  const [one, two, three] = [160, 128, 80].map((width) => new Taken(source.video, videoEncoding({ width }))) as
    [Taken, Taken, Taken];
  const twin = new Taken(source.video, videoEncoding({ width: 160 }));
  const aac = new Taken(source.audio, audioEncoding());
  const opus = new Taken(source.audio, audioEncoding({ codec: 'OPUS' }));
  const packets = [...looped(source, 6)];
  const at = (from: number, to: number) => packets.filter((packet) => secondsOf(packet) >= from && secondsOf(packet) < to);
  transcoder.setJobs([one.task, two.task, aac.task, opus.task]);
  await feed(input, at(0, 7.3), [one, two, aac, opus], 3);
  transcoder.setJobs([one.task, three.task, aac.task, opus.task]);
  const left = two.packets.length;
  await feed(input, at(7.3, 12), [one, three, aac, opus], 3);
  const [pid] = transcoder.pids.slice(-1);
  transcoder.setJobs([one.task, twin.task, three.task, aac.task, opus.task]);
  t.is(transcoder.pids.at(-1), pid, 'the same encode for one more needs no other child');
  t.is(twin.formats.length, 1);
  await feed(input, at(12, 24), [one, three, aac, opus], 3);
  await until('all is out', () => [one, twin, three, aac, opus].every(({ reached }) => reached > 23));
  isWhole(t, one, packets);
  for (const taken of [aac, opus]) isContinuous(t, taken);
  t.is(one.formats.length, 1, 'nobody notices');
  t.is(two.packets.length, left);
  for (const late of [three, twin]) {
    t.true(late.packets[0]?.key);
    const begun = late.packets[0]?.pts as number;
    isWhole(t, late, packets.filter(({ pts, track }) => track !== source.video || pts >= begun));
  }
  t.true((three.packets[0]?.pts as number) <= 7.3 * 90_000, 'from the last key frame on');
  t.deepEqual(one.failures, []);
});

test('another configuration of the input in mid-stream: no picture is lost, decode times grow', async (t) => {
  const source = await clip;
  const second = await makeClip({ width: 160, height: 90, rate: 20, samplerate: 44_100 });
  const { input, transcoder } = open(t, source);
  const opened = (from: Clip) => [
    new Taken(from.video, videoEncoding()), new Taken(from.audio, audioEncoding({ codec: 'OPUS' })),
  ] as const;
  const before = opened(source);
  transcoder.setJobs(before.map(({ task }) => task));
  const first = [...looped(source, 2)];
  await feed(input, first, before);
  // sinks stay: who reads them sees one stream
  const after = opened(second);
  input.setTracks([second.video, second.audio]);
  transcoder.setJobs(before.map((sink, i) => ({ job: (after[i] as Taken).job, sink })));
  const end = { video: 8 * 90_000, audio: Math.round(8 * 44_100) };
  const then = [...looped(second, 2)].map((packet) => {
    const offset = packet.track.type === 'video' ? end.video : end.audio;
    return { ...packet, dts: packet.dts + offset, pts: packet.pts + offset };
  });
  await feed(input, then, before);
  const [video, opus] = before;
  await until('all is out', () => video.reached > 15 && opus.reached > 15);
  isWhole(t, video, [...first, ...then]);
  isOrdered(t, opus);
  const gaps = opus.packets.map(({ pts }, i) => pts - (opus.packets[i - 1]?.pts ?? pts - 960));
  t.true(Math.max(...gaps.slice(2)) < 2 * 960, String(Math.max(...gaps.slice(2))));
  t.deepEqual(video.failures, []);
});
