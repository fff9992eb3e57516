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
  const fed = packets.filter(({ track }) => track.id === taken.job.from.id).map(({ pts }) => pts);
  t.deepEqual(got.toSorted((a, b) => a - b), fed.filter((pts) => pts <= last).sort((a, b) => a - b));
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
  t.log(video.failures.length, video.formats.length, video.packets.length, lines);
  void lines;
});
