import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { buildAv1Config } from '../../src/codecs/av1.ts';
import { buildHevcConfig, isParameterSet, nalType, NAL } from '../../src/codecs/h265.ts';
import { canonicalize } from '../../src/codecs/h265.ts';
import * as av1 from '../../src/codecs/av1.ts';
import { joinNals, splitAnnexB } from '../../src/codecs/nal.ts';
import { buildOpusConfig } from '../../src/codecs/opus.ts';
import type { Packet } from '../../src/core/packet.ts';
import type { OutputStream } from '../../src/core/stream.ts';
import { sameFormat, type AudioTrack, type ImageTrack, type Track, type VideoTrack } from '../../src/core/track.ts';
import { OvtClient } from '../../src/providers/ovt/client.ts';
import { aac } from '../support/aac.ts';
import { goLive } from '../support/live.ts';
import { playOvt, startOvt } from '../support/ovt.ts';
import { until } from '../support/until.ts';
import { h264, ivf, opus, type Media } from '../support/webrtc-media.ts';

/** As a source sends it, from time 0 on. */
function packetsOf<T extends Track>({ track, frames }: Media<T>, start = 0): Packet[] {
  let dts = start;
  return frames.map(({ data, key, duration, delay }) => {
    const packet = { track, dts, pts: dts + delay, duration: 0, key, data };
    dts += duration;
    return packet;
  });
}

async function h265(id = 0): Promise<Media<VideoTrack>> {
  const { stdout } = await promisify(execFile)('ffmpeg', [
    '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-t', '1', '-pix_fmt', 'yuv420p',
    '-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'aud=1:keyint=15:bframes=0:log-level=none', '-f', 'hevc', 'pipe:1',
  ], { encoding: 'buffer', maxBuffer: 16 * 1024 * 1024 });
  const nals = splitAnnexB(stdout);
  const first = (type: number) => nals.filter((nal) => nalType(nal) === type).slice(0, 1);
  const config = buildHevcConfig({ vps: first(NAL.vps), sps: first(NAL.sps), pps: first(NAL.pps) });
  const units: Buffer[][] = [];
  for (const nal of nals) {
    if (nalType(nal) === NAL.delimiter) units.push([]);
    else units.at(-1)?.push(nal);
  }
  const frames = units.map((unit) => ({
    data: canonicalize(joinNals(unit.filter((nal) => !isParameterSet(nal))), 4).data,
    key: unit.some((nal) => nalType(nal) >= 16 && nalType(nal) <= 23), duration: 3000, delay: 0,
  }));
  const { track } = await ivf('VP8', { id, seconds: 0.1 });
  return { track: { ...track, codec: 'H265', config }, frames };
}

async function av1Media(): Promise<Media<VideoTrack>> {
  const { track, frames } = await ivf('AV1', { seconds: 1 });
  const units = frames.map((frame) => ({ ...frame, data: av1.canonicalize(frame.data) }));
  const [first] = units;
  if (first === undefined) throw new Error('no frame');
  return { track: { ...track, config: buildAv1Config(first.data) }, frames: units };
}

async function opusMedia(): Promise<Media<AudioTrack>> {
  const { track, frames } = await opus(1);
  const config = buildOpusConfig({ channels: 2, preSkip: 312, inputSamplerate: 48_000, outputGain: 0, mappingFamily: 0, mapping: undefined });
  return { track: { ...track, config }, frames };
}

const PICTURES: Media<ImageTrack> = {
  track: {
    id: 5, name: 'picture', type: 'image', codec: 'PNG', timebase: { num: 1, den: 90_000 }, bypass: false,
    width: 64, height: 36, bitrate: 0, framerate: 1, keyFrameInterval: 0,
  },
  frames: [1, 2, 3].map((byte) => ({ data: Buffer.alloc(70_000, byte), key: true, duration: 90_000, delay: 0 })),
};

async function playing(t: ExecutionContext, tracks: readonly Track[]) {
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(ovt.registry, 'app', 'talk', tracks);
  const player = await playOvt(ovt.url('app/talk'));
  t.teardown(() => player.client.close());
  return { ovt, output, ...player };
}

function write(output: OutputStream, packets: readonly Packet[]): void {
  for (const packet of packets) output.write(packet);
}

const CASES: readonly (readonly [name: string, media: () => Promise<readonly Media<Track>[]>])[] = [
  ['H.264 and AAC', async () => [await h264({ seconds: 1 }), await aac(440, {}, 1)]],
  ['H.265', async () => [await h265()]],
  ['AV1 and Opus', async () => [await av1Media(), await opusMedia()]],
  ['VP8', async () => [await ivf('VP8', { seconds: 1 })]],
  ['images', async () => [await h264({ seconds: 1 }), PICTURES]],
];

for (const [name, media] of CASES) {
  test(`${name}: what is put out comes in as it was`, async (t) => {
    const all = await media();
    const { output, recorder } = await playing(t, all.map(({ track }) => track));
    const sent = all.map((one) => packetsOf(one));
    for (const packets of sent) write(output, packets);
    await until('all packets', () => recorder.packets.length === sent.flat().length);
    const [{ tracks } = { tracks: [] }] = recorder.told;
    t.is(tracks.length, all.length);
    for (const [i, { track }] of all.entries()) {
      t.true(sameFormat(tracks[i] as Track, track), `${track.codec}: ${JSON.stringify(tracks[i])}`);
      t.like(tracks[i], { id: track.id, name: track.name, type: track.type });
      const received = recorder.of(track.id);
      const own = sent[i] as Packet[];
      t.true(received.every(({ data, key }, at) => data.equals((own[at] as Packet).data) && key === (own[at] as Packet).key));
      const base = (received[0] as Packet).dts;
      t.deepEqual(received.map(({ dts }) => dts - base), own.map(({ dts }) => dts - (own[0] as Packet).dts));
    }
  });
}

test('an edge that is no Kiln gets start codes with parameter sets, and ADTS', async (t) => {
  const [video, audio] = [await h264({ seconds: 0.5 }), await aac(440, {}, 0.5)];
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(ovt.registry, 'app', 'talk', [video.track, audio.track]);
  const { rawOvt } = await import('../support/raw-ovt.ts');
  const edge = await rawOvt(t, ovt.server.port);
  t.like(await edge.ask('describe', ovt.url('app/talk')), { code: 200, contents: { version: 18, stream: { appName: '#default#app', streamName: 'talk' } } });
  const played = await edge.ask('play', ovt.url('app/talk'));
  t.is(played.code, 200);
  t.false('contents' in played);
  write(output, packetsOf(video).slice(0, 2));
  write(output, packetsOf(audio).slice(0, 1));
  const frames = await until('frames', () => edge.frames.length === 3 && edge.frames);
  t.deepEqual(frames.map(({ bitstream, packetType, key }) => [bitstream, packetType, key]), [[1, 3, true], [1, 3, false], [10, 1, true]]);
  t.is(frames[0]?.data.subarray(0, 5).toString('hex'), '0000000167');
  t.is(frames[1]?.data.subarray(0, 4).toString('hex'), '00000001');
  t.is(frames[2]?.data.subarray(0, 2).toString('hex'), 'fff1');
  output.input.close('over');
  const { application, code } = await edge.notice();
  t.deepEqual([application, code], ['stop', 200]);
});

test('a change of tracks in mid-stream', async (t) => {
  const [one, other, sound] = [await h264({ seconds: 0.5 }), await h264({ seconds: 0.5, width: 160, height: 90 }), await aac(440, {}, 0.5)];
  const { output, recorder } = await playing(t, [one.track, sound.track]);
  write(output, packetsOf(one));
  output.setTracks([other.track, sound.track]);
  write(output, packetsOf(other, 90_000));
  output.setTracks([sound.track]);
  write(output, packetsOf(sound));
  await until('all packets', () => recorder.packets.length === one.frames.length + other.frames.length + sound.frames.length);
  const shown = recorder.told.map(({ tracks }) => tracks.map((track) => ('width' in track ? track.width : track.name)));
  t.deepEqual(shown, [[320, 'audio'], [160, 'audio'], ['audio']]);
  const tracks = [...new Set(recorder.packets.map(({ track }) => track))];
  t.deepEqual(tracks.map((track) => ('width' in track ? track.width : track.name)), [320, 160, 'audio']);
});

test('the stream ends: the player is told, and whether it goes on', async (t) => {
  for (const forGood of [false, true]) {
    const { track } = await h264({ seconds: 0.1 });
    const { output, recorder } = await playing(t, [track]);
    if (forGood) output.input.end('deleted');
    else output.input.close('the publisher went');
    const ended = await until('the end', () => recorder.ended);
    t.deepEqual(ended, { reason: `the origin ended the stream: ${forGood ? 'deleted' : 'the publisher went'}`, forGood });
  }
});

test('a player is a session: listed, counted, and thrown out by name', async (t) => {
  const { track, frames } = await h264({ seconds: 0.5 });
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(ovt.registry, 'app', 'talk', [track]);
  const { recorder } = await playOvt(`${ovt.url('app/talk')}?session=edge-1`);
  write(output, packetsOf({ track, frames }));
  await until('all packets', () => recorder.packets.length === frames.length);
  const session = output.sessions.get('edge-1');
  t.like(session, { kind: 'ovt' });
  t.is(output.counters.publishers.ovt, 1);
  t.true((session?.out.totalBytes ?? 0) > frames.reduce((sum, { data }) => sum + data.length, 0));
  t.is(output.counters.out.totalBytes, session?.out.totalBytes);
  await t.throwsAsync(playOvt(`${ovt.url('app/talk')}?session=edge-1`), { message: /refused \(409\)/ });
  session?.kick();
  await until('the end', () => recorder.ended);
  t.is(output.sessions.size, 0);
  t.is(output.counters.publishers.ovt, 0);
  await t.throwsAsync(playOvt(`${ovt.url('app/talk')}?session=edge-1`), { message: /refused \(403\)/ });
  const again = await playOvt(ovt.url('app/talk'));
  again.client.close();
  await until('it is gone', () => output.sessions.size === 0);
});

test('what is not there is refused, and says why', async (t) => {
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const refusal = async (path: string): Promise<string> => {
    const { message, code } = await t.throwsAsync<Error & { code: number }>(OvtClient.connect(ovt.url(path), { log: (await import('../support/ovt.ts')).silent }));
    return `${code} ${message}`;
  };
  t.is(await refusal('app/none'), '404 the origin refused (404): There is no such stream (#default#app/none)');
  t.is(await refusal('other/none'), '404 the origin refused (404): There is no such stream (#default#other/none)');
  goLive(ovt.registry, 'app', 'talk');
  t.is(await refusal('app/talk/hd'), '404 the origin refused (404): There is no such trackset (hd)');
});
