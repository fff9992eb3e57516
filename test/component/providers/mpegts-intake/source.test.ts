import test, { type ExecutionContext } from 'ava';
import type { TsSourceOptions } from '../../../../src/providers/mpegts-intake/source.ts';
import { writeDescriptors } from '../../../../src/containers/mpegts/descriptors.ts';
import { klvItem, metadataCells } from '../../../support/media/klv.ts';
import { encodeTs, PATTERN, TONE, X264 } from '../../../support/mpegts/ts-media.ts';
import { AUDIO, sceneMedia, TsScene, VIDEO } from '../../../support/mpegts/ts-scene.ts';
import { setUpTsSource } from '../../../support/mpegts/ts-source.ts';
import { until } from '../../../support/time/until.ts';

const PICTURE = 3600;
const FRAME = 1920;
const RANGE = 2 ** 33;

async function setUpScene(t: ExecutionContext, config: Partial<TsSourceOptions['config']> = {}) {
  const parts = setUpTsSource(t, config);
  const scene = new TsScene((packet) => parts.source.push(packet));
  const { video, audio } = await sceneMedia();
  const picture = (i: number, time: number, pid = VIDEO.pid) =>
    scene.pes(pid, video[i] as Buffer, { pts: time % RANGE });
  const sound = (i: number, time: number, pid = AUDIO.pid) =>
    scene.pes(pid, audio[i % audio.length] as Buffer, { pts: time % RANGE, streamId: 0xc0 });
  const ids = () => parts.tracks.at(-1)?.map(({ id }) => id);
  const written = (id: number) => parts.packets.filter(({ track }) => track.id === id);
  return { ...parts, scene, picture, sound, ids, written };
}

test('pictures and sound go live together, with their times in step from 0 on', async (t) => {
  const { source, tracks, packets, lines, faults } = setUpTsSource(t);
  const ts = await encodeTs([...PATTERN, ...TONE, ...X264, '-c:a', 'aac']);
  for (let at = 0; at < ts.length; at += 1316) source.push(ts.subarray(at, at + 1316));
  t.is(tracks.length, 1);
  t.like(tracks[0]?.[0], { id: 0, type: 'video', codec: 'H264', width: 160, height: 90 });
  t.like(tracks[0]?.[1], { id: 1, type: 'audio', codec: 'AAC', samplerate: 48_000, channels: 1 });
  const video = packets.filter(({ track }) => track.type === 'video');
  const audio = packets.filter(({ track }) => track.type === 'audio');
  t.is(video.length, 50);
  t.deepEqual(
    video.map(({ dts }) => dts - (video[0]?.dts ?? 0)),
    video.map((_, i) => i * PICTURE),
  );
  t.deepEqual(
    video.map(({ key }) => key),
    video.map((_, i) => i % 25 === 0),
  );
  t.deepEqual(
    audio.map(({ dts }) => dts - (audio[0]?.dts ?? 0)),
    audio.map((_, i) => i * 1024),
  );
  t.is(Math.min(video[0]?.dts ?? -1, audio[0]?.dts ?? -1), 0);
  // ffmpeg puts the beginning of its encoder's sound 1024 samples before the first picture
  t.true(Math.abs((video[0]?.pts ?? 0) / 90_000 - (audio[0]?.pts ?? 0) / 48_000) < 0.1);
  faults.close();
  t.deepEqual(lines, []);
});

test('a stream that is joined begins with its next key frame, and the sound from there on', async (t) => {
  const { scene, picture, sound, tracks, written } = await setUpScene(t);
  scene.tables([VIDEO, AUDIO]);
  for (let i = 10; i < 30; i++) {
    picture(i, i * PICTURE);
    for (const half of [0, 1]) sound(2 * i + half, (2 * i + half) * FRAME);
  }
  t.is(tracks.length, 1);
  t.like(written(0)[0], { key: true, dts: 0 });
  t.is(written(0).length, 5);
  t.is(written(1)[0]?.dts, Math.round(((47 * FRAME - 25 * PICTURE) / 90_000) * 48_000));
});

test('sound alone, where the table has no picture', async (t) => {
  const { scene, sound, tracks } = await setUpScene(t);
  scene.tables([AUDIO]);
  sound(0, 0);
  t.is(tracks.length, 1);
  t.is(tracks[0]?.length, 1);
});

test('sound that does not come is not waited for long, and is added when it comes', async (t) => {
  const { scene, picture, sound, tracks, ids } = await setUpScene(t);
  scene.tables([VIDEO, AUDIO]);
  for (let i = 0; i < 10; i++) picture(i, i * PICTURE);
  t.is(tracks.length, 0);
  await until('the stream', () => tracks.length === 1);
  t.deepEqual(ids(), [0]);
  sound(0, 10 * PICTURE);
  t.deepEqual(ids(), [0, 1]);
});

test('names of sound come from the map, languages from there or from the table', async (t) => {
  const { scene, sound, tracks } = await setUpScene(t, {
    audioMap: [
      { name: 'Original' },
      { name: 'Korean', language: 'ko', characteristics: 'public.accessibility.describes-video' },
    ],
  });
  const language = writeDescriptors([{ tag: 10, data: Buffer.from('eng\0', 'latin1') }]);
  const pids = [257, 258, 259];
  scene.tables(pids.map((pid) => ({ ...AUDIO, pid, descriptors: language })));
  for (const pid of pids) sound(0, 0, pid);
  t.deepEqual(
    tracks.at(-1)?.map(({ id, name, language: told, characteristics }) => [id, name, told, characteristics]),
    [
      [1, 'Original', 'eng', undefined],
      [3, 'Korean', 'ko', 'public.accessibility.describes-video'],
      [5, 'Audio', 'eng', undefined],
    ],
  );
});

test('a table that changes: what leaves it pauses, and what comes on another PID then takes its place', async (t) => {
  const { scene, source, picture, sound, tracks, ids, written } = await setUpScene(t);
  scene.tables([VIDEO, AUDIO, { ...AUDIO, pid: 258 }]);
  picture(0, 0);
  source.flush();
  sound(0, 0);
  sound(0, 0, 258);
  t.deepEqual(ids(), [0, 1, 3]);
  scene.tables([VIDEO, { ...AUDIO, pid: 258 }]);
  t.deepEqual(ids(), [0, 1, 3]);
  picture(1, PICTURE);
  sound(1, FRAME, 258);
  t.is(written(3).length, 2);
  scene.tables([{ ...AUDIO, pid: 300 }, VIDEO, { ...AUDIO, pid: 258 }]);
  sound(2, 2 * FRAME, 300);
  t.deepEqual(ids(), [0, 1, 3]);
  t.is(tracks.length, 2);
  t.is(written(1).length, 2);
});

test('tracks that leave the table and return have the ids of their PIDs, in whatever order', async (t) => {
  const { scene, source, picture, sound, tracks, ids, written } = await setUpScene(t);
  const both = [AUDIO, { ...AUDIO, pid: 258 }];
  scene.tables([VIDEO, ...both]);
  picture(0, 0);
  source.flush();
  for (const { pid } of both) sound(0, 0, pid);
  scene.tables([VIDEO]);
  for (let i = 1; i < 50; i++) picture(i, i * PICTURE);
  scene.tables([VIDEO, { ...AUDIO, pid: 258 }]);
  const late = 50 * PICTURE;
  sound(1, late, 258);
  scene.tables([{ ...AUDIO, pid: 258 }, VIDEO, AUDIO]);
  sound(1, late + FRAME);
  t.deepEqual(ids(), [0, 1, 3]);
  t.true(tracks.every((list) => list.length === 3));
  for (const [id, time] of [
    [3, late],
    [1, late + FRAME],
  ] as const)
    t.true(Math.abs((written(id)[1]?.dts ?? 0) / 48_000 - time / 90_000) < 0.03, `${id}`);
});

test('video leaves the table: its track stays, and goes on with its next key frame', async (t) => {
  const { scene, source, picture, sound, ids, written } = await setUpScene(t);
  scene.tables([VIDEO, AUDIO]);
  picture(0, 0);
  source.flush();
  sound(0, 0);
  scene.tables([AUDIO]);
  for (let i = 1; i < 300; i++) sound(i, i * FRAME);
  t.deepEqual(ids(), [0, 1]);
  scene.tables([VIDEO, AUDIO]);
  for (let i = 0; i < 2; i++) picture(i, 300 * FRAME + i * PICTURE);
  source.flush();
  t.is(written(0).length, 3);
  t.is(written(0)[1]?.dts, 300 * FRAME);
});

test('a codec in the place of another one begins a new track', async (t) => {
  const { scene, source, picture, sound, tracks, packets } = await setUpScene(t);
  scene.tables([VIDEO, AUDIO]);
  picture(0, 0);
  source.flush();
  sound(0, 0);
  scene.tables([VIDEO, { pid: AUDIO.pid, type: 3 }]);
  const layer3 = Buffer.concat([Buffer.from('fffb9464', 'hex'), Buffer.alloc(380)]);
  scene.pes(AUDIO.pid, layer3, { pts: FRAME, streamId: 0xc0 });
  t.deepEqual(
    tracks.map((list) => list.map(({ codec }) => codec)),
    [
      ['H264', 'AAC'],
      ['H264', 'MP3'],
    ],
  );
  t.like(packets.at(-1), { dts: 1024, track: { id: 1, codec: 'MP3', samplerate: 48_000 } });
});

test('pictures behind a loss are left out up to the next key frame; sound goes on', async (t) => {
  const { scene, picture, sound, faults, lines, written } = await setUpScene(t);
  scene.tables([VIDEO, AUDIO]);
  for (let i = 0; i < 40; i++) {
    if (i === 10) scene.on(VIDEO.pid).skip();
    picture(i, i * PICTURE);
    sound(i, i * FRAME);
  }
  t.deepEqual(
    written(0).map(({ dts }) => dts / PICTURE),
    [...Array(10).keys(), ...Array.from({ length: 15 }, (_, i) => 25 + i)],
  );
  t.is(written(1).length, 40);
  faults.close();
  t.deepEqual(lines, ['transport packets were lost', 'video frames after a loss were dropped']);
});

test('times go on where those of the source wrap, and where its clock jumps', async (t) => {
  const { scene, picture, sound, written } = await setUpScene(t);
  scene.tables([VIDEO, AUDIO]);
  const start = RANGE - 5 * PICTURE;
  for (let i = 0; i < 10; i++) {
    picture(i, start + i * PICTURE);
    sound(i, start + i * PICTURE);
  }
  for (let i = 10; i < 20; i++) {
    picture(i, 1_000_000_000 + i * PICTURE);
    sound(i, 1_000_000_000 + i * PICTURE);
  }
  t.deepEqual(
    written(0).map(({ dts }) => dts),
    Array.from({ length: 20 }, (_, i) => i * PICTURE),
  );
  t.true(Math.abs((written(1).at(-1)?.dts ?? 0) / 48_000 - 19 * 0.04) < 0.1);
});

test('times of the source are kept where that is configured', async (t) => {
  const { scene, source, picture, written } = await setUpScene(t, { timestampMode: 'Original' });
  scene.tables([VIDEO]);
  picture(0, 7_000_000);
  source.flush();
  t.is(written(0)[0]?.dts, 7_000_000);
});

test('timed metadata and splices are events of tracks of their own', async (t) => {
  const { scene, picture, written, tracks } = await setUpScene(t);
  const descriptors = writeDescriptors([{ tag: 0x26, data: Buffer.from('ffff49443320ff49443320000f', 'hex') }]);
  scene.tables([VIDEO, { pid: 300, type: 0x15, descriptors }, { pid: 301, type: 0x86 }]);
  const tag = Buffer.from('494433040000000000014242', 'hex');
  const splice = Buffer.from('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=', 'base64');
  const start = 0x07369c02e - 10 * PICTURE;
  scene.send(scene.on(301).section(splice));
  picture(0, start);
  picture(1, start + PICTURE);
  scene.pes(300, tag, { pts: start + 2 * PICTURE, streamId: 0xbd });
  scene.send(scene.on(301).section(splice));
  t.deepEqual(
    tracks[0]?.map(({ id, codec }) => [id, codec]),
    [
      [0, 'H264'],
      [512, 'ID3v2'],
      [513, 'SCTE35'],
    ],
  );
  t.is(tracks.length, 1);
  t.like(written(512)[0], { dts: 2 * PICTURE, pts: 2 * PICTURE, key: true, data: tag });
  t.like(written(513)[0], { dts: PICTURE, pts: 10 * PICTURE, key: true, data: splice });
  t.is(written(513).length, 1);
});

test('KLV is of data tracks, synchronous or not, and of the time at which it comes where it has none', async (t) => {
  const { scene, source, picture, written, tracks, lines, faults } = await setUpScene(t);
  const registered = writeDescriptors([{ tag: 5, data: Buffer.from('KLVA') }]);
  // metadata_application_format 0x0100, and the format by its identifier
  const described = writeDescriptors([{ tag: 0x26, data: Buffer.from('0100ff4b4c5641000f', 'hex') }]);
  scene.tables([
    VIDEO,
    { pid: 300, type: 6, descriptors: registered },
    { pid: 301, type: 0x15, descriptors: described },
    { pid: 302, type: 6, descriptors: writeDescriptors([{ tag: 5, data: Buffer.from('XYZ ') }]) },
  ]);
  const [one, two] = [klvItem('one'), klvItem('two')];
  scene.pes(300, one, { streamId: 0xbd });
  picture(0, 0);
  picture(1, PICTURE);
  scene.pes(300, Buffer.concat([one, two]), { streamId: 0xbd });
  scene.pes(301, metadataCells(one, two), { pts: 2 * PICTURE, streamId: 0xfc });
  scene.pes(300, one.subarray(0, 12), { pts: PICTURE, streamId: 0xbd });
  picture(2, 2 * PICTURE);
  source.flush();
  t.deepEqual(
    tracks.at(-1)?.map(({ id, codec }) => [id, codec]),
    [
      [0, 'H264'],
      [512, 'KLV'],
      [513, 'KLV'],
    ],
  );
  t.is(written(512).length, 1);
  t.deepEqual(written(512)[0]?.data, Buffer.concat([one, two]));
  t.like(written(513)[0], { pts: 2 * PICTURE, key: true, data: Buffer.concat([one, two]) });
  faults.close();
  t.true(lines.includes('unusable KLV'), lines.join());
  t.true(lines.includes('KLV without a time before any audio or video'));
  t.true(lines.includes('XYZ  (stream type 0x06) is not supported: the track is ignored'));
});

test('an unsupported elementary stream is reported once', async (t) => {
  const { scene, source, lines, picture, tracks } = await setUpScene(t);
  for (let i = 0; i < 3; i++) scene.tables([VIDEO, { pid: 300, type: 2 }]);
  picture(0, 0);
  source.flush();
  t.deepEqual(lines, ['MPEG-2 video is not supported: the track is ignored']);
  t.is(tracks.length, 1);
});

test('a source that falls silent has failed, and so has one that changes all the time', async (t) => {
  const silent = await setUpScene(t, { packetSilenceTimeoutMs: 100 });
  silent.scene.tables([AUDIO]);
  silent.sound(0, 0);
  await until('its end', () => silent.failures.length > 0);
  t.deepEqual(silent.failures, ['no packet for 100 ms']);
  const unsteady = await setUpScene(t);
  for (let i = 0; i < 200; i++) {
    unsteady.scene.tables([i % 2 === 0 ? AUDIO : { ...AUDIO, pid: 400, type: 3 }]);
    if (i % 2 === 0) unsteady.sound(0, i * FRAME);
    else
      unsteady.scene.pes(400, Buffer.concat([Buffer.from('fffb9464', 'hex'), Buffer.alloc(380)]), { pts: i * FRAME });
  }
  t.deepEqual(unsteady.failures, ['the configuration of the stream changes too often']);
});
