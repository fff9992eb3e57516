import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { id3Tag } from '../../../src/containers/id3.ts';
import { containerOf } from '../../../src/recording/container.ts';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Track } from '../../../src/core/track.ts';
import { finishLeftovers } from '../../../src/recording/leftovers.ts';
import { codedPackets, ivfPackets, tracksOf } from '../../support/media/coded-packets.ts';
import { canonical, elementary, readFrames, sentFrames, type FrameForm } from '../../support/media/frame-hashes.ts';
import { dataTrack, eventPacket, interleaved } from '../../support/media/packets.ts';
import { openRecords, recordSpec, shifted } from '../../support/recording/recordings.ts';
import { until } from '../../support/time/until.ts';

const PACKETS = codedPackets({ video: { codec: 'H264' }, audio: 'AAC', seconds: 4 });
const TRACKS = tracksOf(PACKETS);
const FILE = '${Stream}/${Sequence}.mp4';

interface Probed {
  readonly streams: readonly { readonly codec_name: string }[];
  readonly packets: readonly object[];
}

type FileRecord = NonNullable<NonNullable<ApplicationConfig['publishers']['file']>['record']>;

/** GOPs of 480 ms, more than twenty of them. */
const GOP = 12;
const SECONDS = 10.1;

interface Source {
  readonly packets: readonly Packet[];
  readonly form: FrameForm;
}

const H264 = codedPackets({ video: { codec: 'H264', gop: GOP }, audio: 'AAC', seconds: SECONDS });
const OPUS = codedPackets({ audio: 'OPUS', seconds: SECONDS });
const OPUS_TRACK = { ...(OPUS[0] as Packet).track, id: 1 };
const VP8 = interleaved(
  ivfPackets('VP8', { seconds: SECONDS, gop: GOP }),
  OPUS.map((packet) => ({ ...packet, track: OPUS_TRACK })),
);
const SOURCES: Readonly<Record<'mp4' | 'ts' | 'webm', Source>> = {
  mp4: { packets: H264, form: canonical },
  ts: { packets: H264, form: elementary },
  webm: { packets: VP8, form: canonical },
};

function startOf(path: string): number {
  const text = execFileSync('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', path]).toString();
  return Number((JSON.parse(text) as { format: { start_time: string } }).format.start_time);
}

/** The same in another order: audio comes so much later than video of the same time, in seconds. */
function late(packets: readonly Packet[], by: number): Packet[] {
  const at = ({ dts, track }: Packet) => (dts * track.timebase.num) / track.timebase.den;
  const comes = (packet: Packet) => at(packet) + (packet.track.type === 'audio' ? by : 0);
  return packets.toSorted((one, other) => comes(one) - comes(other));
}

for (const [extension, by] of [
  ['mp4', 0.35],
  ['ts', 0.35],
  ['webm', 0.35],
  ['mp4', 0.6],
] as const) {
  test.serial(`files of ${extension} begin with their first picture, though audio comes ${by} s later`, async (t) => {
    const { packets, form } = SOURCES[extension];
    const { records, application, stop, publish, root } = await openRecords(t);
    await records.create(application, 'r', recordSpec({ interval: 480, filePath: `\${Sequence}.${extension}` }));
    const output = await publish(tracksOf(packets), 'r');
    const sent = late(shifted(packets, 500), by);
    for (const packet of sent) output.write(packet);
    const { sequence = 0 } = (await stop('r')).report ?? {};
    t.is(sequence, 21);
    const names = Array.from({ length: sequence + 1 }, (_, n) => `${n}.${extension}`);
    for (const name of names) {
      const first = (type: string) => {
        const args = [
          '-v',
          'error',
          '-select_streams',
          `${type}:0`,
          '-show_entries',
          'packet=pts_time',
          '-of',
          'csv=p=0',
        ];
        return Math.min(
          ...execFileSync('ffprobe', [...args, join(root, name)])
            .toString()
            .split('\n')
            .filter(Boolean)
            .map(Number.parseFloat),
        );
      };
      const [video, audio] = [first('v'), first('a')];
      t.true(
        audio - video > (name.startsWith('0.') ? -0.06 : -0.02) && audio - video < 0.05,
        `${name}: video from ${video}, audio from ${audio}`,
      );
    }
    const list = join(root, 'list.txt');
    writeFileSync(list, names.map((name) => `file '${name}'\n`).join(''));
    const begin = sent.find(({ track }) => track.type === 'video') as Packet;
    const at = (time: number, { track }: Packet) => (time * track.timebase.num) / track.timebase.den;
    const recorded = sent.filter(
      (packet) => packet.track.type === 'video' || at(packet.pts + packet.duration / 2, packet) >= at(begin.dts, begin),
    );
    for (const type of ['video', 'audio'] as const) {
      const read = readFrames(['-f', 'concat', '-auto_convert', '0', '-i', list], type);
      t.deepEqual(read, sentFrames(recorded, type, form));
    }
  });
}

for (const [extension, segmentationRule] of [
  ['mp4', 'discontinuity'],
  ['mp4', 'continuity'],
  ['ts', 'discontinuity'],
  ['ts', 'continuity'],
  ['webm', 'discontinuity'],
  ['webm', 'continuity'],
] as const) {
  test.serial(`20 splits of ${extension} with ${segmentationRule} lose no frame and have none twice`, async (t) => {
    const { packets, form } = SOURCES[extension];
    const { records, application, stop, publish, files, root, handed } = await openRecords(t);
    const filePath = `\${Sequence}.${extension}`;
    const spec = recordSpec({ interval: 480, filePath, infoPath: 'info.xml', segmentationRule });
    await records.create(application, 'r', spec);
    const output = await publish(tracksOf(packets), 'r');
    for (const packet of shifted(packets, 500)) output.write(packet);
    await stop('r');
    const names = Array.from({ length: 22 }, (_, n) => `${n}.${extension}`);
    t.deepEqual(files(), [...names, 'info.xml'].sort());
    t.deepEqual(
      Object.fromEntries(handed.map(({ pathBelow, sequence }) => [sequence, pathBelow])),
      Object.fromEntries(names.entries()),
    );
    const list = join(root, 'list.txt');
    writeFileSync(list, names.map((name) => `file '${name}'\n`).join(''));
    // audio from before the first key frame is in no file
    const sent = packets.slice(packets.findIndex(({ track }) => track.type === 'video'));
    for (const type of ['video', 'audio'] as const) {
      const read = readFrames(['-f', 'concat', '-auto_convert', '0', '-i', list], type);
      t.deepEqual(read, sentFrames(sent, type, form));
    }
    // 18 files of 480 ms before it
    const start = startOf(join(root, names[18] as string)) - startOf(join(root, names[0] as string));
    const expected = segmentationRule === 'continuity' ? 18 * 0.48 : 0;
    t.true(Math.abs(start - expected) < 0.05, `starts at ${start}`);
    const info = readFileSync(join(root, 'info.xml'), 'utf8');
    t.is(info.match(/<file>/g)?.length, names.length);
    t.is(info.match(/<lastSequence>true/g)?.length, 1);
    t.regex(info, /<lastSequence>true<\/lastSequence>[^]*<\/files>/);
  });
}

test.serial('a recording goes on with the next sequence when its stream is back, and keeps its totals', async (t) => {
  const { records, application, stop, publish, files } = await openRecords(t);
  t.is((await records.create(application, 'r', recordSpec({ filePath: FILE, infoPath: 'i.xml' }))).report, undefined);
  const first = await publish(TRACKS, 'r');
  for (const packet of PACKETS) first.write(packet);
  const before = (await records.list(application, 'r'))[0]?.report;
  t.like(before, { state: 'recording', sequence: 0, warnings: [] });
  first.input.close('gone');
  await until('nobody runs it', async () => (await records.list(application, 'r'))[0]?.report === undefined);
  const second = await publish(TRACKS, 'r');
  for (const packet of PACKETS) second.write(packet);
  const after = (await records.list(application, 'r'))[0]?.report;
  t.is(after?.sequence, 1);
  t.is(after?.totalRecordTime, 2 * (after?.recordTime ?? 0));
  await stop('r');
  t.deepEqual(files(), ['i.xml', 'stream/0.mp4', 'stream/1.mp4']);
  t.deepEqual(await records.list(application), []);
});

for (const extension of ['mp4', 'ts']) {
  test.serial(`a recording that was asked for before its stream has its first picture, in ${extension}`, async (t) => {
    const { records, application, stop, publish, root } = await openRecords(t);
    await records.create(application, 'r', recordSpec({ filePath: `r.${extension}` }));
    const output = await publish(TRACKS);
    const half = PACKETS.length / 2;
    for (const packet of PACKETS.slice(0, half)) output.write(packet);
    const isRecording = async () => (await records.list(application, 'r'))[0]?.report?.state === 'recording';
    await until('it is recorded', isRecording);
    for (const packet of PACKETS.slice(half)) output.write(packet);
    await stop('r');
    const sent = PACKETS.slice(PACKETS.findIndex(({ track }) => track.type === 'video'));
    for (const type of ['video', 'audio'] as const) {
      const form = extension === 'mp4' ? canonical : elementary;
      t.deepEqual(readFrames(['-i', join(root, `r.${extension}`)], type), sentFrames(sent, type, form));
    }
  });
}

test.serial('events go into MPEG-TS from their first on, in the same file, and not into MP4', async (t) => {
  const { records, application, stop, publish, files, root } = await openRecords(t);
  await records.create(application, 'r', recordSpec({ filePath: 'a.ts', infoPath: 'i.xml' }));
  await records.create(application, 's', recordSpec({ filePath: 'a.mp4', infoPath: 'i.xml' }));
  const output = await publish(TRACKS, 'r');
  await until('both read', () => output.readers > 1);
  const half = PACKETS.length / 2;
  for (const packet of PACKETS.slice(0, half)) output.write(packet);
  const data = id3Tag([{ id: 'TIT2', text: 'On air' }]);
  const events = dataTrack();
  output.setTracks([...TRACKS, events]);
  output.write(eventPacket(events, 5 * 90_000, data));
  for (const packet of PACKETS.slice(half)) output.write(packet);
  for (const id of ['r', 's'])
    t.like((await records.list(application, id))[0]?.report, { state: 'recording', sequence: 0, warnings: [] });
  await records.stop(application, 'r');
  await stop('s');
  t.deepEqual(files(), ['a.mp4', 'a.ts', 'i.xml']);
  const args = ['-v', 'error', '-select_streams', 'd', '-show_entries', 'stream=codec_name:packet=size'];
  const shown = (name: string) =>
    JSON.parse(execFileSync('ffprobe', [...args, '-of', 'json', join(root, name)]).toString()) as Probed;
  const { streams, packets } = shown('a.ts');
  t.deepEqual(
    streams.map(({ codec_name: name }) => name),
    ['timed_id3'],
  );
  t.is(packets.length, 1);
  t.true(readFileSync(join(root, 'a.ts')).includes(data));
  t.deepEqual(shown('a.mp4').streams, []);
});

test.serial('a task names the file that is being written, and its end the name that it got', async (t) => {
  const { records, application, stop, publish, files, root } = await openRecords(t);
  mkdirSync(root);
  writeFileSync(join(root, '0.ts'), 'mine');
  const spec = recordSpec({ filePath: '/${Sequence}.ts', infoPath: 'info/i.xml', interval: 480 });
  await records.create(application, 'r', spec);
  await records.create(application, 'e', recordSpec({ filePath: '${Id}/${EndTime}.mp4', infoPath: 'e.xml' }));
  const output = await publish(TRACKS, 'r');
  await until('both read', () => output.readers > 1);
  const paths = async () => {
    const { state, outputFilePath, outputInfoPath } = (await records.list(application, 'r'))[0]?.report ?? {};
    return [state, outputFilePath, outputInfoPath];
  };
  t.deepEqual(await paths(), ['ready', undefined, undefined]);
  for (const packet of PACKETS.slice(0, 1)) output.write(packet);
  t.is((await paths())[0], 'recording');
  const info = join(root, 'info/i.xml');
  await until('its name is known', async () => (await paths())[1] === join(root, '0_1.ts'));
  t.is((await paths())[2], info);
  for (const packet of PACKETS.slice(1)) output.write(packet);
  const { sequence } = (await records.list(application, 'r'))[0]?.report ?? {};
  t.true(sequence !== undefined && sequence > 0);
  t.deepEqual(await paths(), ['recording', join(root, `${sequence}.ts`), info]);
  const stopped = await records.stop(application, 'r');
  t.like(stopped.report, { sequence, outputFilePath: join(root, `${sequence}.ts`), outputInfoPath: info });
  const { outputFilePath = '' } = (await stop('e')).report ?? {};
  t.true(files().includes(outputFilePath.slice(root.length + 1)), outputFilePath);
  // of two that would get the same name
  for (const id of ['x', 'y']) await records.create(application, id, recordSpec({ filePath: 'same.ts' }));
  await until('both read', () => output.readers > 1);
  for (const packet of shifted(PACKETS, 10)) output.write(packet);
  const names = [
    (await records.stop(application, 'x')).report?.outputFilePath,
    (await stop('y')).report?.outputFilePath,
  ];
  t.deepEqual(names, [join(root, 'same.ts'), join(root, 'same_1.ts')]);
});

test.serial('audio that begins makes one more file, and audio that is encoded beside it none', async (t) => {
  const { records, application, stop, publish, files, root } = await openRecords(t);
  for (const extension of ['mp4', 'ts'])
    await records.create(
      application,
      extension,
      recordSpec({ filePath: `\${Sequence}.${extension}`, infoPath: 'i.xml' }),
    );
  const [video, audio] = TRACKS as [Track, Track];
  const aac = { ...audio, id: 2 };
  const encoded = { ...OPUS_TRACK, bypass: false };
  const output = await publish([video]);
  await until('both read', () => output.readers > 1);
  const seconds = ({ dts, track }: Packet) => (dts * track.timebase.num) / track.timebase.den;
  // its encoder takes a while
  const more = OPUS.map((packet) => ({ ...packet, track: encoded })).filter((packet) => seconds(packet) < 3);
  const steps = new Map([
    [0.5, [video, aac]],
    [1.5, [video, encoded, aac]],
  ]);
  for (const packet of interleaved(PACKETS, more)) {
    for (const [at, tracks] of steps) {
      if (seconds(packet) < at) continue;
      steps.delete(at);
      output.setTracks(tracks);
    }
    const track = packet.track === audio ? aac : packet.track;
    if (output.tracks.includes(track)) output.write({ ...packet, track });
  }
  await records.stop(application, 'ts');
  await stop('mp4');
  t.deepEqual(files(), ['0.mp4', '0.ts', '1.mp4', '1.ts', 'i.xml']);
  for (const name of ['1.mp4', '1.ts']) {
    const args = ['-v', 'error', '-show_entries', 'stream=codec_name', '-of', 'json', join(root, name)];
    const { streams } = JSON.parse(execFileSync('ffprobe', args).toString()) as Probed;
    t.deepEqual(streams.map(({ codec_name: codec }) => codec).sort(), ['aac', 'h264'], name);
  }
});

test.serial('a file that exists is never replaced', async (t) => {
  const { records, application, stop, publish, files, root } = await openRecords(t);
  mkdirSync(root);
  writeFileSync(join(root, 'a.ts'), 'mine');
  await records.create(application, 'r', recordSpec({ filePath: 'a.ts', infoPath: 'i.xml' }));
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  await stop('r');
  t.deepEqual(files(), ['a.ts', 'a_1.ts', 'i.xml']);
  t.is(readFileSync(join(root, 'a.ts'), 'utf8'), 'mine');
});

test.serial('no file ends before its media, however fast that comes', async (t) => {
  const { records, application, stop, publish, handed } = await openRecords(t);
  await records.create(application, 'r', recordSpec({ interval: 1000 }));
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  await stop('r');
  t.true(handed.length > 1);
  for (const { startTime, recordTime, finishTime } of handed) t.true(startTime + recordTime <= finishTime);
});

test.serial('a disk that fails is an error of the task, which stays until it is stopped', async (t) => {
  const { records, application, stop, publish, root } = await openRecords(t);
  writeFileSync(root, 'not a folder');
  await records.create(application, 'r', recordSpec());
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  const failed = await until('it has failed', async () => {
    const [task] = await records.list(application, 'r');
    return task?.report?.state === 'error' ? task.report : undefined;
  });
  t.regex(failed.reason ?? '', /EEXIST|ENOTDIR/);
  output.input.close('gone');
  await until('nobody reads', async () => output.readers === 0);
  t.is((await records.list(application, 'r'))[0]?.report?.state, 'error');
  await stop('r');
});

test.serial('a track that a container cannot carry is left out, with a warning', async (t) => {
  const { records, application, stop, publish } = await openRecords(t);
  const odd = TRACKS.map((track) => (track.type === 'audio' ? { ...track, codec: 'PCMA' as const } : track));
  await records.create(application, 'r', recordSpec({ filePath: 'a.mp4' }));
  const output = await publish(odd, 'r');
  for (const packet of PACKETS) output.write(packet);
  const [task] = await records.list(application, 'r');
  t.deepEqual(task?.report?.warnings, ['track 1 (audio) is left out: PCMA cannot be carried in MP4']);
  await stop('r');
});

for (const path of [
  '../x.ts',
  '/../x.ts',
  'a/../../x.ts',
  '/a/../../x.ts',
  `${'x'.repeat(300)}.ts`,
  'a\0.ts',
  'out/x.ts',
  '/out/x.ts',
  'dir/',
]) {
  test.serial(`${JSON.stringify(path.slice(0, 20))} is no path below the root`, async (t) => {
    const { records, application, root, folder } = await openRecords(t);
    mkdirSync(root);
    symlinkSync(folder, join(root, 'out'));
    await t.throwsAsync(() => records.create(application, 'r', recordSpec({ filePath: path })), {
      code: 'taskInvalid',
    });
    await t.throwsAsync(() => records.create(application, 'r', recordSpec({ infoPath: path })), {
      code: 'taskInvalid',
    });
    t.deepEqual(await records.list(application), []);
    t.deepEqual(readdirSync(root), ['out']);
  });
}

test.serial('a leading / of both paths is the root, and an upload has the key of the file below it', async (t) => {
  const { records, application, stop, publish, files, handed } = await openRecords(t);
  const filePath = '/${VirtualHost}/${Stream}/a.ts';
  const created = await records.create(application, 'r', recordSpec({ filePath, infoPath: '/info/i.xml' }));
  t.is(created.spec.filePath, filePath);
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  await stop('r');
  t.deepEqual(files(), ['default/stream/a.ts', 'info/i.xml']);
  t.like(handed, [{ pathBelow: 'default/stream/a.ts' }]);
});

test.serial('a recording whose uploads would leave their bucket is refused', async (t) => {
  const upload = { prefix: 'live/${Id}/' } as NonNullable<FileRecord['upload']>;
  const { records, application } = await openRecords(t, { record: { upload } });
  await t.throwsAsync(() => records.create(application, '..', recordSpec()), { code: 'taskInvalid' });
  await t.notThrowsAsync(() => records.create(application, 'r', recordSpec()));
});

test.serial('names with dots, Unicode and the root itself are fine', async (t) => {
  const { records, application, stop, publish, files, root } = await openRecords(t);
  await records.create(application, 'ünï..', recordSpec({ filePath: `${root}/x/${'${Id}'}.ts`, infoPath: '..i.xml' }));
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  await stop('ünï..');
  t.deepEqual(files(), ['..i.xml', 'x/ünï...ts']);
});

for (const extension of ['mp4', 'ts']) {
  test.serial(`a ${extension} recording of a killed process is finished at the next start`, async (t) => {
    const { journal, root, log, files } = await openRecords(t);
    mkdirSync(root);
    const muxer = containerOf(`a.${extension}`).open(TRACKS, (fault) => t.fail(fault), undefined);
    const pieces = PACKETS.flatMap((packet) => muxer.write(packet));
    const temporary = join(root, `tmp_${'0'.repeat(32)}`);
    const bytes = Buffer.concat(pieces);
    writeFileSync(temporary, bytes.subarray(0, Math.floor(bytes.length * 0.7)));
    const names = { transactionId: 'x', id: 'r', vhost: 'default', app: 'app', stream: 's', source: 's' };
    const times = { sequence: 3, createdTime: 1, startTime: Date.now() };
    await journal.put({ ...names, ...times, temporary, root, file: `a.${extension}`, info: 'i.xml' });
    await finishLeftovers(await journal.list(), journal, log);
    t.deepEqual(files(), [`a.${extension}`, 'i.xml']);
    t.deepEqual(await journal.list(), []);
    const finished = join(root, `a.${extension}`);
    execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', finished, '-f', 'null', '-']);
    if (extension === 'mp4') t.is(readFileSync(finished).toString('latin1', 36, 40), 'mdat');
    t.false(existsSync(temporary));
  });
}

test.serial('a recording that begins at an open key frame has no pictures that need others from before', async (t) => {
  const { records, application, stop, publish, root } = await openRecords(t);
  await records.create(application, 'r', recordSpec({ filePath: '${Sequence}.mp4' }));
  const output = await publish(TRACKS, 'r');
  let behind = 0;
  // two pictures behind each key frame are shown before it
  const packets = PACKETS.map((packet) => {
    if (packet.track.type !== 'video') return packet;
    behind = packet.key ? 0 : behind + 1;
    const later = behind === 0 ? 3 : behind < 3 ? 0 : 2;
    return { ...packet, key: packet.key && ('open' as const), pts: packet.dts + later * 3600 };
  });
  for (const packet of packets) output.write(packet);
  await stop('r');
  const args = ['-v', 'error', '-select_streams', 'v:0', '-count_packets', '-show_entries', 'stream=nb_read_packets'];
  const count = execFileSync('ffprobe', [...args, '-of', 'csv=p=0', join(root, '0.mp4')]).toString();
  t.is(Number.parseInt(count), packets.filter(({ track }) => track.type === 'video').length - 2);
});
