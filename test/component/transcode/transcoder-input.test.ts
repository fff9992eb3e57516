import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import type { Track } from '../../../src/core/track.ts';
import { findFfmpeg } from '../../../src/ffmpeg.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { writeScript } from '../../support/programs/script.ts';
import { until } from '../../support/time/until.ts';
import { feed, openTranscoder, orderFaults, pictureFaults, soundFaults } from '../../unit/transcode/rig.ts';
import {
  audioEncoding,
  looped,
  makeClip,
  pictureAndSound,
  Taken,
  videoEncoding,
  type Clip,
} from '../../unit/transcode/sources.ts';

/** Of the sound that a test takes away. */
const MUTE_RATE = 16_000;
const clip = makeClip({ width: 160, height: 90, rate: 10 });

function open(t: ExecutionContext, source: Clip, hangMs?: number, codecs?: CodecInventory) {
  const opened = openTranscoder(source, { hangMs, codecs });
  t.teardown(() => opened.transcoder.close());
  return opened;
}

test.serial('new metadata of a track restarts no encoder, nor tries again one that was given up', async (t) => {
  const source = await clip;
  const { input, transcoder } = open(t, source);
  const [video, aac] = pictureAndSound(source);
  const bad = new Taken(source.video, videoEncoding({ codec: 'VP8', modules: 'libvpx', width: 20_000, height: 8 }));
  const all = [video, aac, bad];
  transcoder.setJobs(all.map(({ task }) => task));
  const packets = [...looped(source, 4)];
  const half = packets.length / 2;
  await feed(input, packets.slice(0, half), [video, aac], 12);
  await until('it is given up', () => bad.failures.at(-1)?.final);
  await until('the others work', () => video.reached > 5 && aac.reached > 5);
  const { pids } = transcoder;
  const told = [video, aac, bad].map(({ failures, formats }) => failures.length + formats.length);
  const said = new Map<Track, Track>([
    [source.video, { ...source.video, bitrate: 123_000, framerate: 12 }],
    [source.audio, { ...source.audio, bitrate: 45_000, language: 'de' }],
  ]);
  input.setTracks([...said.values()]);
  transcoder.setJobs(
    all.map(({ job, task }) => ({ ...task, job: { ...job, from: said.get(job.from) as typeof job.from } })),
  );
  const rest = packets.slice(half).map((packet): Packet => ({ ...packet, track: said.get(packet.track) as Track }));
  await feed(input, rest, [video, aac], 12);
  await until('all is out', () => video.reached > 15 && aac.reached > 15);
  t.deepEqual(transcoder.pids, pids);
  t.deepEqual(
    [video, aac, bad].map(({ failures, formats }) => failures.length + formats.length),
    told,
  );
  t.deepEqual(pictureFaults(video, packets), []);
  t.deepEqual(soundFaults(aac), []);
});

test.serial('an encode that was given up is not tried again after encoders have rested', async (t) => {
  const source = await clip;
  const { input, transcoder } = open(t, source);
  const [video, aac] = pictureAndSound(source);
  const bad = new Taken(source.video, videoEncoding({ codec: 'VP8', modules: 'libvpx', width: 20_000, height: 8 }));
  const tasks = [video, aac, bad].map(({ task }) => task);
  transcoder.setJobs(tasks);
  const packets = [...looped(source, 12)];
  const third = packets.length / 3;
  await feed(input, packets.slice(0, third), [video, aac], 12);
  await until('it is given up', () => bad.failures.at(-1)?.final);
  const told = bad.failures.length;
  for (const [n, resting] of [[], tasks].entries()) {
    transcoder.setJobs(resting, true);
    const reached = video.reached;
    transcoder.setJobs(tasks);
    await feed(input, packets.slice((n + 1) * third, (n + 2) * third), [video, aac], 12);
    await until('the others work', () => video.reached > reached + 3);
  }
  t.is(bad.failures.length, told);
});

test.serial('an encoder that puts out nothing, not even alone, is given up', async (t) => {
  const source = await clip;
  const folder = await mkdtemp(join(tmpdir(), 'kiln-transcoder-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const { path: ffmpeg } = await findFfmpeg();
  const path = writeScript(
    join(folder, 'ffmpeg'),
    `for arg; do
  shift
  case $arg in *sample_rates=${MUTE_RATE}:*) arg="$arg,aselect=0" ;; esac
  set -- "$@" "$arg"
done
exec ${ffmpeg} "$@"`,
  );
  const codecs = new CodecInventory({ log: pino({ level: 'silent' }), env: { KILN_FFMPEG: path } });
  // longer than a busy machine takes to start an ffmpeg
  const { input, transcoder } = open(t, source, 5000, codecs);
  const [video, aac] = pictureAndSound(source);
  const mute = new Taken(source.audio, audioEncoding({ samplerate: MUTE_RATE }));
  transcoder.setJobs([video, aac, mute].map(({ task }) => task));
  // an encoder hangs only while it is given input
  const packets = looped(source, Infinity);
  await until('it is given up', async () => {
    const next = Array.from({ length: 50 }, () => packets.next().value as Packet);
    await feed(input, next, [video, aac], 12);
    return mute.failures.at(-1)?.final;
  });
  await until('one ffmpeg does the others', () => transcoder.pids.length === 1);
  t.deepEqual(mute.packets, []);
  t.deepEqual(
    [...video.failures, ...aac.failures].filter(({ final }) => final),
    [],
  );
});

test.serial('encoders that stay behind go on at a key frame, with a warning', async (t) => {
  const source = await clip;
  const { input, transcoder, lines } = open(t, source, 60_000);
  const [video, aac] = pictureAndSound(source);
  transcoder.setJobs([video.task, aac.task]);
  const packets = [...looped(source, 20)];
  // more than goes into pipes, less than may wait
  const third = Math.round(packets.length / 3);
  await feed(input, packets.slice(0, 100), [video, aac]);
  await until('it works', () => video.reached > 0 && aac.reached > 0);
  const [pid] = transcoder.pids as [number];
  process.kill(pid, 'SIGSTOP');
  for (const packet of packets.slice(100, third)) input.write(packet);
  await until('it is told', () => lines.some(({ msg }) => /too slow/.test(String(msg))));
  process.kill(pid, 'SIGCONT');
  const before = video.packets.length;
  await feed(input, packets.slice(third), [video, aac], 40);
  await until('all is out', () => video.reached > 78 && aac.reached > 78);
  t.deepEqual([...orderFaults(video.packets), ...orderFaults(aac.packets)], []);
  const rest = video.packets.slice(before);
  const gap = rest.findIndex(({ pts }, i) => i > 0 && pts - (rest[i - 1]?.pts ?? 0) > 90_000);
  t.true(rest[gap]?.key, 'behind what was left out it begins with a key frame');
  t.deepEqual(transcoder.pids, [pid]);
  t.deepEqual([...video.failures, ...aac.failures], []);
});
