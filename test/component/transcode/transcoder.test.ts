import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { seeded } from '../../unit/codecs/vectors.ts';
import { FFMPEG7, FFMPEGS } from '../../support/media/ffmpeg.ts';
import { processTree } from '../../support/load/usage.ts';
import { long } from '../../support/runner/long.ts';
import { standStillBeforeTimers } from '../../support/time/stand-still.ts';
import { until } from '../../support/time/until.ts';
import { BEEPS, skewedClocks } from '../../unit/transcode/clocks.ts';
import { killChildren } from '../../unit/transcode/kills.ts';
import { feed, openTranscoder, orderFaults, pictureFaults, soundFaults } from '../../unit/transcode/rig.ts';
import {
  audioEncoding,
  looped,
  makeClip,
  pictureAndSound,
  secondsOf,
  Taken,
  videoEncoding,
  type Clip,
} from '../../unit/transcode/sources.ts';
import { writeScript } from '../../support/programs/script.ts';

const KILLS = 8;
/** So small that what is fed ahead goes into pipes: a queue that does not get shorter is left out. */
const clip = makeClip({ width: 96, height: 64 });

function open(t: ExecutionContext, source: Clip, hangMs?: number, codecs?: CodecInventory) {
  const opened = openTranscoder(source, { hangMs, codecs });
  t.teardown(() => opened.transcoder.close());
  return opened;
}

function isWhole(t: ExecutionContext, taken: Taken, packets: readonly Packet[]): void {
  t.deepEqual(pictureFaults(taken, packets), []);
}

function isContinuous(t: ExecutionContext, taken: Taken): void {
  t.deepEqual(soundFaults(taken), []);
}

test.serial('every frame comes out once with its time, sound without a gap, in what was asked for', async (t) => {
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
  t.deepEqual(
    all.flatMap(({ failures }) => failures),
    [],
  );
});

test.serial('children that are killed at any time are started again, and nothing is missing', async (t) => {
  const { faults, video, lines } = await killChildren(await clip, KILLS, 21);
  t.deepEqual(faults, []);
  t.is(video.failures.length, KILLS);
  t.true(video.failures.every(({ reason, final }) => reason === 'ffmpeg was ended by SIGKILL' && !final));
  t.is(video.formats.length, KILLS + 1, 'it is told of every start');
  t.is(lines.length, KILLS);
});

test.serial('sound stays where its timestamps are, whatever they do', async (t) => {
  const source = await makeClip({ seconds: 8, width: 160, height: 90, rate: 5, gop: 5, sound: BEEPS });
  for (const samplerate of [48_000, 44_100]) {
    const { worst, beeps, faults } = await skewedClocks(source, 180, 8, samplerate);
    t.deepEqual(faults, []);
    t.true(beeps > 120, `${beeps} beeps`);
    t.true(Math.abs(worst) < 0.01, `${worst} s`);
  }
});

test.serial('an encoder that hangs is detected, killed and restarted, and no frame is missing', async (t) => {
  const source = await clip;
  // longer than a busy machine takes to start an ffmpeg
  const { input, transcoder } = open(t, source, 5000);
  const [video, aac] = pictureAndSound(source);
  transcoder.setJobs([video.task, aac.task]);
  const packets = [...looped(source, 8)];
  const feeding = feed(input, packets, [video, aac], 8);
  await until('it goes', () => video.reached > 3);
  const [pid] = transcoder.pids;
  process.kill(pid as number, 'SIGSTOP');
  await feeding;
  await until('all is out', () => video.reached > 31 && aac.reached > 31);
  t.regex(video.failures[0]?.reason ?? '', /^ffmpeg (produces no output|does not read its input)$/);
  t.not(transcoder.pids[0], pid);
  t.throws(() => process.kill(pid as number, 0));
  isWhole(t, video, packets);
  isContinuous(t, aac);
});

long('when this process stands still its encoders are not taken for hung', async (t) => {
  const source = await clip;
  const { input, transcoder, lines } = open(t, source, 5000);
  const [video, aac] = pictureAndSound(source);
  transcoder.setJobs([video.task, aac.task]);
  const packets = [...looped(source, 7)];
  const third = Math.round(packets.length / 3);
  await feed(input, packets.slice(0, third), [video, aac], 5);
  // more than goes into pipes
  for (const packet of packets.slice(third)) input.write(packet);
  await standStillBeforeTimers(6500);
  await until('all is out', () => video.reached > 27 && aac.reached > 27);
  t.deepEqual(lines, []);
  isWhole(t, video, packets);
  isContinuous(t, aac);
});

long('an encoder that exits long after its outputs have ended is restarted as one', async (t) => {
  const source = await clip;
  const folder = await mkdtemp(join(tmpdir(), 'kiln-transcoder-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = writeScript(
    join(folder, 'ffmpeg'),
    `case "$*" in *pipe:0*) ;; *) exec ${FFMPEG7} "$@";; esac
exec 9<&0
${FFMPEG7} "$@" <&9 9<&- &
exec 0<&- 3>&- 4>&- 9<&-
wait $!
sleep 1.5`,
  );
  const codecs = new CodecInventory({ log: pino({ level: 'silent' }), env: { KILN_FFMPEG: path } });
  const { input, transcoder, lines } = open(t, source, undefined, codecs);
  const [video, aac] = pictureAndSound(source);
  transcoder.setJobs([video.task, aac.task]);
  const packets = [...looped(source, 8)];
  const feeding = feed(input, packets, [video, aac]);
  await until('it goes', () => video.reached > 3);
  const [, ffmpeg] = processTree(transcoder.pids[0] as number);
  process.kill(ffmpeg as number, 'SIGKILL');
  await feeding;
  await until('all is out', () => video.reached > 31 && aac.reached > 31);
  t.is(transcoder.pids.length, 1);
  const told = lines.filter(({ reason }) => reason !== undefined);
  t.deepEqual(
    told.map(({ msg }) => msg),
    ['an encoder process has died and will be started again'],
  );
  isWhole(t, video, packets);
  isContinuous(t, aac);
});

test.serial(
  'changed encoder jobs: those that stay go on, new ones begin with a key frame, and former ones get nothing',
  async (t) => {
    const source = await clip;
    const { input, transcoder } = open(t, source);
    const [one, two, three] = [160, 128, 80].map((width) => new Taken(source.video, videoEncoding({ width }))) as [
      Taken,
      Taken,
      Taken,
    ];
    const twin = new Taken(source.video, videoEncoding({ width: 160 }));
    const aac = new Taken(source.audio, audioEncoding());
    const opus = new Taken(source.audio, audioEncoding({ codec: 'OPUS' }));
    const packets = [...looped(source, 6)];
    const at = (from: number, to: number) =>
      packets.filter((packet) => secondsOf(packet) >= from && secondsOf(packet) < to);
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
      isWhole(
        t,
        late,
        packets.filter(({ pts, track }) => track !== source.video || pts >= begun),
      );
    }
    t.true((three.packets[0]?.pts as number) <= 7.3 * 90_000, 'from the last key frame on');
    t.deepEqual(one.failures, []);
  },
);

test.serial('jobs that are asked for again go on where they were', async (t) => {
  const source = await clip;
  const { input, transcoder } = open(t, source);
  const [video, aac] = pictureAndSound(source);
  const all = [video, aac];
  const tasks = all.map(({ task }) => task);
  const packets = [...looped(source, 3)];
  const at = (from: number, to: number) =>
    packets.filter((packet) => secondsOf(packet) >= from && secondsOf(packet) < to);
  transcoder.setJobs(tasks);
  await feed(input, at(0, 3.5), all);
  await until('nearly all is out', () => all.every(({ reached }) => reached > 3.3));
  transcoder.setJobs([]);
  const idle = all.map(({ packets: { length } }) => length);
  await feed(input, at(3.5, 3.8), []);
  await until('no encoder is at work', () => transcoder.pids.length === 0);
  t.deepEqual(
    all.map(({ packets: { length } }) => length),
    idle,
  );
  transcoder.setJobs(tasks);
  await feed(input, at(3.8, 7.5), all);
  await until('nearly all is out', () => all.every(({ reached }) => reached > 7.3));
  isWhole(t, video, packets);
  isContinuous(t, aac);
  transcoder.setJobs([]);
  await until('no encoder is at work', () => transcoder.pids.length === 0);
  await feed(input, at(7.5, 10.2), []);
  transcoder.setJobs(tasks);
  await feed(input, at(10.2, 12), all);
  await until('all is out', () => all.every(({ reached }) => reached > 11.5));
  t.deepEqual(
    all.flatMap(({ packets: of }) => orderFaults(of)),
    [],
  );
  const resumed = video.packets.find(({ pts }) => pts > 8 * 90_000);
  t.true(resumed?.key);
  t.is(Math.floor((resumed?.pts ?? 0) / 90_000), 10, 'from the last key frame on');
});

test.serial('a new configuration of the input in mid-stream loses no frame, and decode times grow', async (t) => {
  // the last pictures are decoded before others that are shown earlier
  const source = await makeClip({ seconds: 8, width: 96, height: 64, bFrames: 2 });
  const second = await makeClip({ seconds: 8, width: 160, height: 90, rate: 20, samplerate: 44_100 });
  const { input, transcoder } = open(t, source);
  const opened = (from: Clip) =>
    [new Taken(from.video, videoEncoding()), new Taken(from.audio, audioEncoding({ codec: 'OPUS' }))] as const;
  const before = opened(source);
  transcoder.setJobs(before.map(({ task }) => task));
  const first = [...looped(source, 1)];
  await feed(input, first, before);
  // sinks stay: who reads them sees one stream
  const after = opened(second);
  input.setTracks([second.video, second.audio]);
  transcoder.setJobs(before.map((sink, i) => ({ job: (after[i] as Taken).job, sink })));
  const shown = first.flatMap(({ track, pts }) => (track.type === 'video' ? pts : []));
  const end = { video: Math.max(...shown) + 90_000 / 25, audio: Math.round(8 * 44_100) };
  const then = [...looped(second, 2)].map((packet) => {
    const offset = packet.track.type === 'video' ? end.video : end.audio;
    return { ...packet, dts: packet.dts + offset, pts: packet.pts + offset };
  });
  await feed(input, then, before);
  const [video, opus] = before;
  await until('all is out', () => video.reached > 15 && opus.reached > 15);
  isWhole(t, video, [...first, ...then]);
  t.deepEqual(orderFaults(opus.packets), []);
  const gaps = opus.packets.map(({ pts }, i) => pts - (opus.packets[i - 1]?.pts ?? pts - 960));
  t.true(Math.max(...gaps.slice(2)) < 2 * 960, String(Math.max(...gaps.slice(2))));
  t.deepEqual(video.failures, []);
});

for (const [name, ffmpeg] of FFMPEGS) {
  test.serial(`${name}: an encoder that cannot work is given up, the others go on`, async (t) => {
    const source = await clip;
    const codecs = new CodecInventory({ log: pino({ level: 'silent' }), env: { ...process.env, KILN_FFMPEG: ffmpeg } });
    const { input, transcoder } = open(t, source, undefined, codecs);
    const good = new Taken(source.video, videoEncoding());
    // VP8 knows no picture so large: it fails when it is opened
    const bad = new Taken(source.video, videoEncoding({ codec: 'VP8', modules: 'libvpx', width: 20_000, height: 8 }));
    const aac = new Taken(source.audio, audioEncoding());
    transcoder.setJobs([good.task, bad.task, aac.task]);
    const packets = [...looped(source, 5)];
    await feed(input, packets, [good, aac], 12);
    await until('all is out', () => good.reached > 19 && aac.reached > 19);
    await until('it is given up', () => bad.failures.at(-1)?.final);
    t.deepEqual(bad.packets, []);
    t.true(good.failures.every(({ final }) => !final));
    isWhole(t, good, packets);
    isContinuous(t, aac);
    const [pid] = transcoder.pids;
    const told = bad.failures.length;
    transcoder.setJobs([good.task, bad.task, aac.task]);
    t.is(transcoder.pids[0], pid, 'it is not tried again');
    t.is(bad.failures.length, told);
  });

  test.serial(`${name}: an encoder that takes the others with it and is not named is found`, async (t) => {
    const source = await clip;
    const codecs = new CodecInventory({ log: pino({ level: 'silent' }), env: { ...process.env, KILN_FFMPEG: ffmpeg } });
    const { input, transcoder } = open(t, source, undefined, codecs);
    const overlay = {
      file: '/nowhere/logo.png',
      format: 'png',
      left: 0,
      top: 0,
      width: 8,
      height: 8,
      opacity: 100,
    } as const;
    const bad = new Taken(source.video, videoEncoding({ overlays: [overlay] }));
    const good = [160, 128, 80].map((width) => new Taken(source.video, videoEncoding({ width })));
    const aac = new Taken(source.audio, audioEncoding());
    const all = [...good, aac];
    transcoder.setJobs([...good.slice(0, 1), bad, ...good.slice(1), aac].map(({ task }) => task));
    const packets = [...looped(source, 8)];
    const half = packets.length / 2;
    await feed(input, packets.slice(0, half), all, 17);
    await until('all is out', () => all.every(({ reached }) => reached > 15));
    await until('it is given up', () => bad.failures.at(-1)?.final);
    await until('one ffmpeg does the others', () => transcoder.pids.length === 1);
    await feed(input, packets.slice(half), all);
    await until('all is out', () => all.every(({ reached }) => reached > 31));
    t.deepEqual(
      all.filter(({ failures }) => failures.some(({ final }) => final)),
      [],
    );
    for (const taken of good) isWhole(t, taken, packets);
    isContinuous(t, aac);
  });

  test.serial(
    `${name}: a picture of nothing but damage costs the sound nothing, and nothing starts again`,
    async (t) => {
      const source = await clip;
      const codecs = new CodecInventory({
        log: pino({ level: 'silent' }),
        env: { ...process.env, KILN_FFMPEG: ffmpeg },
      });
      const { input, transcoder, lines } = open(t, source, undefined, codecs);
      const [video, aac] = pictureAndSound(source);
      transcoder.setJobs([video.task, aac.task]);
      const random = seeded(4);
      const damaged = [...looped(source, 4)].map((packet) => {
        if (packet.track !== source.video) return packet;
        const data = Buffer.from(packet.data.map(() => Math.floor(random() * 256)));
        return { ...packet, data };
      });
      await feed(input, damaged, [aac]);
      await until('the sound is out', () => aac.reached > 15);
      isContinuous(t, aac);
      t.deepEqual([...aac.failures, ...video.failures], []);
      t.is(transcoder.pids.length, 1);
      transcoder.close();
      t.true(
        lines.some(({ count }) => Number(count) > 0),
        'it is counted',
      );
      t.true(lines.every(({ msg }) => !/started again/.test(String(msg))));
    },
  );
}

test.serial(
  'a codec that this machine does not have fails at once, once for each sink, and holds up no other',
  async (t) => {
    const source = await clip;
    const { input, transcoder } = open(t, source);
    const none = new Taken(source.video, { ...videoEncoding(), codec: 'VP7' as 'VP8' });
    const again = new Taken(source.video, none.job.encoding);
    const aac = new Taken(source.audio, audioEncoding());
    transcoder.setJobs([none.task, aac.task]);
    transcoder.setJobs([none.task, again.task, aac.task]);
    const packets = [...looped(source, 1)];
    await feed(input, packets, [aac], 100);
    await until('sound is out', () => aac.reached > 3);
    transcoder.setJobs([none.task, again.task, aac.task]);
    for (const { failures } of [none, again])
      t.deepEqual(failures, [{ reason: 'this ffmpeg has no encoder for VP7', final: true }]);
  },
);

test.serial('without an ffmpeg every job fails for good', async (t) => {
  const source = await clip;
  const nowhere = new CodecInventory({ log: pino({ level: 'silent' }), env: { KILN_FFMPEG: '/nowhere/ffmpeg' } });
  const { transcoder } = open(t, source, undefined, nowhere);
  const aac = new Taken(source.audio, audioEncoding());
  transcoder.setJobs([aac.task]);
  await until('it failed', () => aac.failures.length > 0);
  t.deepEqual(aac.failures, [{ reason: 'ffmpeg was not found', final: true }]);
});

long('an ffmpeg that is away for a while, as during its upgrade, is tried until it is back', async (t) => {
  const source = await clip;
  const folder = await mkdtemp(join(tmpdir(), 'kiln-transcoder-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'ffmpeg');
  const upgrade = () => symlink(FFMPEG7, path);
  await upgrade();
  const codecs = new CodecInventory({ log: pino({ level: 'silent' }), env: { KILN_FFMPEG: path } });
  await codecs.read();
  await rm(path);
  const { input, transcoder } = open(t, source, undefined, codecs);
  const [video, aac] = pictureAndSound(source);
  transcoder.setJobs([video.task, aac.task]);
  const packets = [...looped(source, 2)];
  for (const packet of packets) input.write(packet);
  await until('it was tried again and again', () => aac.failures.length > 4);
  await upgrade();
  await until('all is out', () => video.reached > 7.5 && aac.reached > 7.5);
  t.true(aac.failures.every(({ reason, final }) => /ffmpeg does not start: .*ENOENT/.test(reason) && !final));
  isWhole(t, video, packets);
  isContinuous(t, aac);
});

test.serial('active encoders and decoders are counted, and none is left when the input ends', async (t) => {
  const source = await clip;
  const counted = new CodecInventory({ log: pino({ level: 'silent' }) });
  await counted.read();
  const open_ = async () => (await readdir('/proc/self/fd')).length;
  const active = async () =>
    (await counted.read()).flatMap(({ name, mediaType, metrics: { active: at } }) =>
      at.decoder + at.encoder > 0 ? [`${mediaType} ${name} ${at.decoder} ${at.encoder}`] : [],
    );
  const files = await open_();
  const pids = new Set<number>();
  for (let round = 0; round < 20; round++) {
    const { input, transcoder } = open(t, source, undefined, counted);
    const video = new Taken(source.video, videoEncoding());
    const low = new Taken(source.video, videoEncoding({ width: 80, height: 48 }));
    const opus = new Taken(source.audio, audioEncoding({ codec: 'OPUS' }));
    transcoder.setJobs([video.task, low.task, opus.task]);
    for (const packet of looped(source, 1)) input.write(packet);
    if (round % 4 === 0) {
      await until('it works', () => [video, low, opus].every(({ reached }) => reached > 0));
      t.deepEqual((await active()).sort(), [
        'Audio default:0 1 0',
        'Audio libopus:0 0 1',
        'Video default:0 1 0',
        'Video x264:0 0 2',
      ]);
    } else {
      await until('it has begun', () => transcoder.pids.length > 0);
    }
    for (const pid of transcoder.pids) pids.add(pid);
    if (round % 2 === 0) input.close('the source has gone');
    else transcoder.close();
    t.is(input.readers, 0);
    const after = video.packets.length;
    transcoder.setJobs([video.task]);
    await until('nothing is at work', async () => (await active()).length === 0);
    t.is(video.packets.length, after);
  }
  await until('no file is open any more', async () => (await open_()) <= files);
  for (const pid of pids) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});
