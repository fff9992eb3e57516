import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { joinNals, nalUnits, splitAnnexB } from '../../../../src/codecs/nal.ts';
import { Mp4File } from '../../../../src/containers/fmp4/file.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { MediaTrack, VideoCodec } from '../../../../src/core/track.ts';
import { wireForm } from '../../../../src/protocols/ovt/wire-form.ts';
import { VideoIntake } from '../../../../src/providers/intake/video-intake.ts';
import { decoded } from '../../../support/media/decoded.ts';
import { elementary } from '../../../support/media/frame-hashes.ts';
import { nutOf } from '../../../support/media/media-files.ts';
import { startSegmenter } from '../../../support/media/segmenter.ts';
import { demuxTs, encodeTs, PATTERN } from '../../../support/mpegts/ts-media.ts';

const STEP = 3600;

/** The pictures of an encode, each as NAL units behind lengths. */
async function pictures(seconds: number, ...args: string[]): Promise<Buffer[]> {
  const { units } = demuxTs(await encodeTs([...PATTERN, ...args, '-pix_fmt', 'yuv420p'], { seconds }));
  return [...units.values()].flat().map(({ data }) => data);
}

/** As they go through the server. */
function packetsOf(codec: VideoCodec, units: readonly Buffer[]): Packet[] {
  const source = new VideoIntake({ id: 1, codec });
  return units.map((data, i) => {
    const { track, data: picture, key } = source.frame(data, i * STEP, 0);
    return { track, dts: i * STEP, pts: i * STEP, duration: STEP, key, data: picture };
  });
}

/** MD5 of each picture that ffmpeg decodes without an error. */
async function hashes(file: Buffer | string): Promise<string[]> {
  const lines = (await decoded(file, ['-fps_mode', 'passthrough', '-f', 'framemd5'])).toString().split('\n');
  return lines.flatMap((line) => (line === '' || line.startsWith('#') ? [] : (line.split(',')[5] ?? '').trim()));
}

/** Fails when a consumer does not decode to what the source does. */
async function decodesEverywhere(t: ExecutionContext, source: Buffer, packets: readonly Packet[]): Promise<void> {
  const wanted = await hashes(source);
  t.is(wanted.length, packets.length);
  const track = packets[0]?.track as MediaTrack;

  const hls = startSegmenter([track]);
  hls.push(packets);
  const segments = hls.segments(1);
  t.false(segments.slice(1).some(({ discontinuity }) => discontinuity));
  t.deepEqual(hls.faults(), []);
  const inits = [...new Set(segments.map(({ init }) => init))];
  const own = track.codec === 'H264' ? ['avc1', 'avc3'] : ['hvc1', 'hev1'];
  t.deepEqual(
    inits.map(({ codec }) => codec.slice(0, 4)),
    own,
  );
  const shown: string[] = [];
  for (const init of inits) {
    const parts = segments.filter((one) => one.init === init).flatMap((one) => one.parts.map(({ data }) => data));
    shown.push(...(await hashes(Buffer.concat([init.data, ...parts]))));
  }
  t.deepEqual(shown, wanted.slice(0, shown.length), 'LL-HLS');
  t.true(shown.length > wanted.length - 25);

  const file = new Mp4File([track]);
  const bytes = packets.flatMap((packet) => [...file.write(packet)]);
  const { tail, patches } = file.end();
  const mp4 = Buffer.concat([...bytes, ...tail]);
  for (const { at, data } of patches) data.copy(mp4, at);
  const folder = await mkdtemp(join(tmpdir(), 'kiln-sets-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'sets.mp4'), mp4);
  t.deepEqual(await hashes(join(folder, 'sets.mp4')), wanted, 'MP4');
  t.true(mp4.subarray(-20_000).includes(own[1] as string));

  // what comes late begins with any key frame
  const half = packets.slice(packets.findLastIndex(({ key }, i) => key && i < packets.length / 2));
  for (const [from, name] of [
    [packets, 'all'],
    [half, 'late'],
  ] as const) {
    const expected = wanted.slice(-from.length);
    t.deepEqual(await hashes(Buffer.concat(from.map((packet) => elementary(packet)))), expected, `MPEG-TS, ${name}`);
    const form = wireForm(track, 'framed');
    t.deepEqual(await hashes(Buffer.concat(from.flatMap((packet) => form?.pieces(packet) ?? []))), expected, name);
    t.deepEqual(await hashes(nutOf(track, from)), expected, `NUT, ${name}`);
  }
}

const annexB = (units: readonly Buffer[]): Buffer =>
  Buffer.concat(units.flatMap((unit) => [...nalUnits(unit)].flatMap((nal) => [Buffer.of(0, 0, 0, 1), nal])));

test('SPS ids that grow from 0 to 31: every picture decodes, in one format', async (t) => {
  const clip = (id: number) =>
    pictures(0.2, '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-x264-params', `sps-id=${id}:scenecut=0`);
  const clips: Buffer[] = [];
  for (let id = 0; id < 32; id += 4)
    clips.push(...(await Promise.all([0, 1, 2, 3].map((more) => clip(id + more)))).flat());
  const units = [...clips, ...clips];
  const packets = packetsOf('H264', units);
  t.is(new Set(packets.map(({ track }) => (track as { config?: Buffer }).config)).size, 1);
  await decodesEverywhere(t, annexB(units), packets);
});

test('PPS of H.265 that change with each GOP: every picture decodes, in one format', async (t) => {
  const encode = (signhide: number) => {
    const gop = 'keyint=10:min-keyint=10:open-gop=0:scenecut=0:repeat-headers=1:bframes=0:aud=0:info=0:log-level=error';
    return pictures(4, '-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', `${gop}:signhide=${signhide}`);
  };
  const both = await Promise.all([encode(0), encode(1)]);
  const units = both[0].map((_, i) => both[Math.floor(i / 10) % 2]?.[i] as Buffer);
  const packets = packetsOf('H265', units);
  t.is(new Set(packets.map(({ track }) => (track as { config?: Buffer }).config)).size, 1);
  await decodesEverywhere(t, annexB(units), packets);
});

test('a byte stream in one NAL unit decodes as one in many', async (t) => {
  const units = await pictures(2, '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-g', '25');
  const whole = units.map((unit) => joinNals([annexB([unit]).subarray(4)]));
  const packets = packetsOf('H264', whole);
  t.deepEqual(
    packets.map(({ data }) => [...nalUnits(data)]),
    packetsOf('H264', units).map(({ data }) => splitAnnexB(annexB([data]))),
  );
  t.is(packets.filter(({ key }) => key).length, 2);
});
