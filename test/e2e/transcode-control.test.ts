import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import type { Static } from 'typebox';
import type { CodecEntry } from '../../src/transcode/codecs.ts';
import { controlServer, json } from '../support/access/control-server.ts';
import { lastPicture } from '../support/media/decoded.ts';
import { encodersOf } from '../support/programs/encoders.ts';
import { Program, publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { AAC, BYPASS, LONG_LLHLS, OPUS, ladderXml, video } from '../support/media/ladder-config.ts';
import type { Recording } from '../support/hls/llhls-recording.ts';
import { long } from '../support/runner/long.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { moreSegments, recordings, trackOf } from '../support/hls/renditions.ts';
import { until, untilWorks } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { shared } from '../support/runner/shared.ts';

const run = promisify(execFile);

const undo = new Teardown();
test.after.always(() => undo.run());

async function start(t: Pick<ExecutionContext, 'teardown'>, options: KilnOptions): Promise<Kiln> {
  const kiln = await Kiln.start({ llhls: LONG_LLHLS, ...options });
  t.teardown(() => kiln.stop());
  return kiln;
}

function publish(t: ExecutionContext, kiln: Kiln, gop = 30): Program {
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '320x180', bitrate: '200k', gop });
  t.teardown(() => publisher.stop());
  return publisher;
}

/** Names of the tracks of the only output, as players may have them. */
async function variants(kiln: Kiln): Promise<string[]> {
  return (await kiln.liveStream('live')).outputs.flatMap(({ tracks }) => tracks.map(({ name }) => name));
}

/** Video encoders at work, as the codec inventory counts them. */
async function activeEncoders(kiln: Kiln): Promise<number> {
  const { body } = await kiln.api<Static<typeof CodecEntry>[]>('/v2/internals/codecs');
  return body.response
    .filter(({ mediaType }) => mediaType === 'Video')
    .reduce((sum, { metrics }) => sum + metrics.active.encoder, 0);
}

test('on demand, encoders rest without viewers and come back for a WebRTC viewer and for an LL-HLS player', async (t) => {
  const pictureAlone = `<OutputProfile><Name>picture</Name><OutputStreamName>\${OriginStreamName}_p</OutputStreamName><Encodes>${video(88, 100)}</Encodes></OutputProfile>`;
  const kiln = await start(t, {
    application: ladderXml([video(88, 100), AAC, OPUS], { options: '<OnDemand>true</OnDemand>', more: pictureAlone }),
  });
  publish(t, kiln);
  // of this one, a profile never makes an output
  const sound = new Program('ffmpeg', [
    '-nostdin',
    '-v',
    'error',
    '-re',
    '-f',
    'lavfi',
    '-i',
    'sine',
    '-ac',
    '2',
    '-ar',
    '48000',
    '-c:a',
    'aac',
    '-f',
    'flv',
    kiln.rtmpUrl('sound'),
  ]);
  t.teardown(() => sound.stop());
  await kiln.liveStream('live');
  await kiln.liveStream('sound');
  t.like((await trackOf(kiln, '88p'))?.video, { codecStatus: 'Ready', codecModule: 'x264' });
  await until('the encoders rest', () => encodersOf(kiln.pid).length === 0);
  await until('none is counted', async () => (await activeEncoders(kiln)) === 0);

  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  await peer.play(kiln.httpUrl('/app/live?direction=whep'));
  await peer.until(() => peer.frames().length >= 30 && peer.packets.audio.length >= 30);
  t.is(encodersOf(kiln.pid).length, 1, 'those of the other stream rest');
  t.is(await activeEncoders(kiln), 1);

  const player = { stream: 'sound' };
  t.is(
    (await fetch(kiln.httpUrl('/app/sound/llhls.m3u8'))).status,
    200,
    'who asks for a playlist wakes them, and waits',
  );
  const [old] = await untilWorks('the sound is back', () => recordings(kiln, ['aac'], player));
  const before = Math.max(...(old?.segments.map(({ msn }) => msn) ?? []));
  const [tone] = (await moreSegments(kiln, ['aac'], 2, player)) as [Recording];
  t.true(tone.segments.some(({ msn, gap, frames }) => msn > before && !gap && frames.length > 0));
  t.is(encodersOf(kiln.pid).length, 2);
});

long('without output profiles, audio is encoded for WebRTC while it has viewers, and not for HLS', async (t) => {
  const kiln = await start(t, {});
  publish(t, kiln);
  await kiln.liveStream('live');
  const audio = () => recordings(kiln, ['aac']).catch(() => undefined);
  await until('HLS plays its audio', async () => (await audio())?.some(({ frames }) => frames.length > 0));
  t.deepEqual(encodersOf(kiln.pid), []);
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  await peer.play(kiln.httpUrl('/app/live?direction=whep'));
  await peer.until(() => peer.frames().length >= 30 && peer.packets.audio.length >= 50);
  t.is(encodersOf(kiln.pid).length, 1);
  peer.close();
  await until('the encoder rests again', () => encodersOf(kiln.pid).length === 0);
});

const webhook = (url: string, more = '') =>
  `<TranscodeWebhook><Enable>true</Enable><ControlServerUrl>${url.replaceAll('&', '&amp;')}</ControlServerUrl>` +
  `<SecretKey>secret</SecretKey><Timeout>60000</Timeout>${more}</TranscodeWebhook>`;

const PROFILES = {
  outputProfile: [
    {
      name: 'named',
      outputStreamName: '${OriginStreamName}',
      encodes: {
        videos: [{ name: 'low', codec: 'h264', height: 88, bitrate: 100_000, preset: 'faster' }],
        audios: [{ name: 'sound', bypass: true }],
      },
    },
  ],
};

long('a control server names the output profiles; a slow one costs no frame', async (t) => {
  const { url, questions } = await controlServer(t, (response) => {
    setTimeout(() => json({ allowed: true, outputProfiles: PROFILES })(response), 1500);
  });
  const kiln = await start(t, { application: webhook(url) });
  // the only key frame for a minute is the first
  const published = performance.now();
  publish(t, kiln, 1800);
  t.deepEqual(await variants(kiln), ['low', 'sound']);
  // one that takes longer to start is not waited for, but has no other key frame to begin with either
  const inTime = performance.now() - published < 5000;
  t.is(questions.length, 1);
  t.is(typeof questions[0]?.headers['x-ome-signature'], 'string');
  t.like(JSON.parse(questions[0]?.body.toString() ?? ''), {
    stream: { name: 'live', virtualHost: 'default', application: 'app', sourceType: 'Rtmp' },
  });
  const [low] = (await moreSegments(kiln, ['low'], 3)) as [Recording];
  t.true((low.frames[0]?.pts ?? Infinity) < (inTime ? 0.1 : 60), `begins at ${low.frames[0]?.pts}`);
  if (inTime) t.is(low.segments[0]?.msn, 0);
});

long(
  'a control server refuses: no output stream and an alert, or the local profiles where that is configured',
  async (t) => {
    const { url } = await controlServer(t, json({ allowed: false, reason: 'not today' }));
    const refused = await start(t, { application: webhook(url) });
    publish(t, refused);
    await until('the alert', () => /EGRESS_STREAM_CREATION_FAILED.*not today/.test(refused.log));
    const { input, outputs } = (await refused.stream('live')).body.response;
    t.is(input.tracks.length, 2);
    t.deepEqual(outputs, []);
    t.is((await fetch(refused.httpUrl('/app/live/llhls.m3u8'))).status, 404);
    await refused.stop();

    const local = await start(t, {
      application:
        webhook(url, '<UseLocalProfilesOnServerDisallow>true</UseLocalProfilesOnServerDisallow>') + ladderXml([BYPASS]),
    });
    publish(t, local);
    t.deepEqual(await variants(local), ['source']);
  },
);

const [WIDTH, HEIGHT] = [160, 88];

/** A folder with a white logo, and an overlay of it on the track `drawn`. @returns the path of OverlayInfo.xml */
async function writeOverlay(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-overlay-'));
  undo.teardown(() => rm(folder, { recursive: true }));
  const white = ['-f', 'lavfi', '-i', 'color=white:size=40x20', '-frames:v', '1', '-pix_fmt', 'rgba'];
  await run('ffmpeg', ['-v', 'error', ...white, join(folder, 'logo.png')]);
  const info = join(folder, 'OverlayInfo.xml');
  await writeFile(
    info,
    '<?xml version="1.0"?><OverlayMap><OverlayInfo>' +
      '<OutputStreamName>live</OutputStreamName><VariantNames>drawn</VariantNames>' +
      '<Overlay><Url>logo.png</Url><Left>MAIN_W-60</Left><Top>20</Top></Overlay></OverlayInfo></OverlayMap>',
  );
  return info;
}

/** The luma by place in two encoded tracks of a black source: of the one that has an overlay, and of another. */
async function recordOverlay() {
  const encode = (name: string) =>
    `<Video><Name>${name}</Name><Codec>h264</Codec><Width>${WIDTH}</Width><Height>${HEIGHT}</Height><Bitrate>200000</Bitrate></Video>`;
  const kiln = await start(undo, {
    application: ladderXml([encode('drawn'), encode('plain')], {
      options: `<MediaOptions><Overlays><Enable>true</Enable><Path>${await writeOverlay()}</Path></Overlays></MediaOptions>`,
    }),
  });
  const publisher = publishPattern(kiln.rtmpUrl('live'), { source: 'color=black:size=320x180:rate=15', rate: 15 });
  undo.teardown(() => publisher.stop());
  await kiln.liveStream('live');
  const recorded = await moreSegments(kiln, ['drawn', 'plain'], 2);
  await kiln.stop();
  const [drawn, plain] = await Promise.all(recorded.map(({ file }) => lastPicture(file, WIDTH, HEIGHT)));
  const lumaOf = (picture: Buffer | undefined) => (x: number, y: number) => picture?.[y * WIDTH + x] ?? -1;
  return { drawn: lumaOf(drawn), plain: lumaOf(plain) };
}

const recordedOverlay = shared(recordOverlay);

/** Points within the logo. */
const COVERED = [
  [105, 25],
  [120, 30],
  [135, 35],
] as const;

long('an overlay is drawn on the encoded track that it names, at its place', async (t) => {
  const { drawn } = await recordedOverlay();
  for (const [x, y] of COVERED) t.true(drawn(x, y) > 200, `${x},${y}: ${drawn(x, y)}`);
  for (const [x, y] of [
    [90, 30],
    [150, 30],
    [120, 10],
    [120, 50],
  ] as const)
    t.true(drawn(x, y) < 40, `${x},${y}`);
});

long('an overlay is not drawn on the source, from which other tracks are encoded', async (t) => {
  const { plain } = await recordedOverlay();
  for (const [x, y] of COVERED) t.true(plain(x, y) < 40, `${x},${y}: ${plain(x, y)}`);
});

test('output profiles made, replaced and deleted by the API rule the next publish of the stream', async (t) => {
  const kiln = await start(t, { hostName: 'static.example.com' });
  const application = {
    name: 'app',
    type: 'live',
    providers: { rtmp: {} },
    publishers: { llhls: { segmentDuration: 1, chunkDuration: 0.25 } },
    outputProfiles: PROFILES,
  };
  await kiln.api('/v1/vhosts', 'POST', [{ name: 'made', host: { names: ['127.0.0.1'] }, applications: [application] }]);
  const profiles = '/v1/vhosts/made/apps/app/outputProfiles';
  const encode = (height: number) => ({
    name: `${height}p`,
    codec: 'h264',
    height,
    bitrate: 100_000,
    preset: 'faster',
  });
  const second = (height: number) => ({
    outputStreamName: '${OriginStreamName}_2',
    encodes: { videos: [encode(height)] },
  });
  /** Publishes anew; `${stream}:${variant}` of all that is ready. */
  const publishAgain = async (): Promise<string[]> => {
    const publisher = publish(t, kiln);
    const found = await until('every output is ready', async () => {
      const { status, body } = await kiln.api<Awaited<ReturnType<Kiln['liveStream']>>>(
        '/v1/vhosts/made/apps/app/streams/live',
      );
      const tracks =
        status === 200
          ? body.response.outputs.flatMap(({ name, tracks: all }) => all.map((track) => ({ name, track })))
          : [];
      const ready = tracks.every(
        ({ track: { video: picture, audio: sound } }) => (picture ?? sound)?.codecStatus === 'Ready',
      );
      return tracks.length > 0 && ready && tracks.map(({ name, track }) => `${name}:${track.name}`);
    });
    for (const stream of new Set(found.map((one) => one.split(':')[0] ?? ''))) {
      const url = kiln.httpUrl(`/app/${stream}/llhls.m3u8`);
      await until(`${stream} plays`, async () => (await fetch(url)).status === 200);
    }
    await kiln.api('/v1/vhosts/made/apps/app/streams/live', 'DELETE');
    await publisher.exited();
    return found;
  };
  t.deepEqual(await publishAgain(), ['live:low', 'live:sound']);
  t.is((await kiln.api(profiles, 'POST', [{ name: 'second', ...second(88) }])).status, 200);
  t.deepEqual(await publishAgain(), ['live:low', 'live:sound', 'live_2:88p']);
  t.is((await kiln.api(`${profiles}/second`, 'PATCH', second(44))).status, 200);
  t.deepEqual(await publishAgain(), ['live:low', 'live:sound', 'live_2:44p']);
  t.is((await kiln.api(`${profiles}/named`, 'DELETE')).status, 200);
  t.deepEqual(await publishAgain(), ['live_2:44p']);
  await until('encoders end with their stream', () => encodersOf(kiln.pid).length === 0);
});
