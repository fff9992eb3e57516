import { fileURLToPath } from 'node:url';
import test from 'ava';
import type { Page } from 'playwright-core';
import type { OutputStream } from '../../src/core/output-stream.ts';
import type { VideoTrack } from '../../src/core/track.ts';
import { WebrtcSession } from '../../src/publishers/webrtc/session.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { long } from '../support/runner/long.ts';
import { until } from '../support/time/until.ts';
import { startWebrtc, type WebrtcServerOptions } from '../support/webrtc/webrtc-server.ts';

const PUBLISHER = fileURLToPath(new URL('../support/webrtc/whip-publisher.js', import.meta.url));
const PLAYER = fileURLToPath(new URL('../support/webrtc/whep-player.js', import.meta.url));
const OVENLIVEKIT = fileURLToPath(import.meta.resolve('ovenlivekit/dist/OvenLiveKit.min.js'));

const browser = await launchBrowser();
test.after.always(() => browser.close());

type Test = import('ava').ExecutionContext;

async function start(t: Test, options: WebrtcServerOptions = {}) {
  const server = await startWebrtc(t, options);
  const application = server.registry.vhost('default').application('app');
  const openPage = async (): Promise<Page> => {
    const page = await browser.newPage();
    t.teardown(() => page.close());
    await page.goto(`${server.url}/page`);
    for (const path of [PUBLISHER, PLAYER, OVENLIVEKIT]) await page.addScriptTag({ path });
    return page;
  };
  const live = () =>
    until('the stream is live', () => {
      return application.output('stream')?.playlists.length ? application.stream('stream') : undefined;
    });
  return { ...server, application, openPage, live };
}

interface Received {
  readonly frames: number;
  readonly width: number;
  readonly audioEnergy: number;
}

/** Luma of a picture that is not black, of 255. */
const SOME_LIGHT = 40;

/** Plays by WHEP in a page until there is picture and sound. */
async function watch(page: Page, url: string): Promise<Received> {
  await page.evaluate(`playWhep('${url}')`);
  return until('picture and sound', async () => {
    const counts = (await page.evaluate('received()')) as Received;
    return counts.frames >= 30 && counts.audioEnergy > 0 && counts;
  });
}

for (const codec of ['VP8', 'H264', 'VP9', 'AV1']) {
  test.serial(`Chromium publishes ${codec} and Opus by WHIP, and another page of it sees and hears that`, async (t) => {
    const { url, openPage, live } = await start(t);
    const page = await openPage();
    await page.evaluate(`publishWhip('${url}/app/stream?direction=whip', { codec: '${codec}' })`);
    const input = await live();
    t.deepEqual(
      input.tracks.map((track) => track.codec),
      [codec, 'OPUS'],
    );
    const viewer = await openPage();
    const { width } = await watch(viewer, `${url}/app/stream?direction=whep`);
    t.is(width, (input.tracks[0] as VideoTrack).width);
  });
}

for (const [scheme, config] of [
  ['http', { preferredVideoFormat: 'H264' }],
  ['ws', {}],
] as const) {
  long(`OvenLiveKit, unchanged, publishes over ${scheme}`, async (t) => {
    const { port, url, openPage, live } = await start(t);
    const page = await openPage();
    const direction = scheme === 'http' ? 'whip' : 'send';
    await page.evaluate(
      `publishOven('${scheme}://127.0.0.1:${port}/app/stream?direction=${direction}', ${JSON.stringify(config)})`,
    );
    const input = await live();
    t.deepEqual(
      input.tracks.map(({ codec }) => codec),
      ['H264', 'OPUS'],
    );
    const viewer = await openPage();
    await watch(viewer, `${url}/app/stream?direction=whep`);
    t.is(await page.evaluate('window.failure'), undefined);
    await page.evaluate('kit.stopStreaming()');
    await until('the stream ends', () => input.closed);
  });
}

long('of a simulcast in a codec that has none here comes one picture', async (t) => {
  const { url, openPage, live } = await start(t);
  const page = await openPage();
  await page.evaluate(`publishWhip('${url}/app/stream?direction=whip', { codec: 'VP9', encodings: [
    { rid: 'h', scalabilityMode: 'L1T1' }, { rid: 'l', scaleResolutionDownBy: 2, scalabilityMode: 'L1T1' },
  ] })`);
  const input = await live();
  t.deepEqual(
    input.tracks.map(({ codec }) => codec),
    ['VP9', 'OPUS'],
  );
});

test.serial('a simulcast by rid is several tracks of one name, and the qualities of WebRTC viewers', async (t) => {
  const { url, openPage, live, application } = await start(t);
  const page = await openPage();
  await page.evaluate(`publishWhip('${url}/app/stream?direction=whip', { codec: 'VP8', width: 960, height: 540, encodings: [
    { rid: 'h' }, { rid: 'm', scaleResolutionDownBy: 2 }, { rid: 'l', scaleResolutionDownBy: 4 },
  ] })`);
  const input = await live();
  await until('all qualities', () => input.tracks.filter(({ type }) => type === 'video').length === 3);
  const video = input.tracks.filter((track) => track.type === 'video');
  t.is(new Set(video.map(({ name }) => name)).size, 1);
  // one that came late is behind the others
  t.deepEqual(
    video.map(({ width }) => width).sort((one, other) => other - one),
    [960, 480, 240],
  );
  t.deepEqual(
    video.map(({ codec }) => codec),
    ['VP8', 'VP8', 'VP8'],
  );
  for (const { id } of video) await until('frames of each', () => (input.measured(id)?.framerateLatest ?? 0) > 5);

  const output = application.output('stream') as OutputStream;
  output.addPlaylist({
    name: 'abr',
    fileName: 'abr',
    options: {
      webrtcAutoAbr: false,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: false,
    },
    renditions: [480, 240, 960].map((width) => {
      // playlists count by id, which one that came late has after the others
      const qualities = output.tracks.filter((track) => track.type === 'video').sort((one, other) => one.id - other.id);
      return {
        name: `${width}`,
        videoVariantName: qualities[0]?.name,
        videoIndex: qualities.findIndex((track) => track.width === width),
      };
    }),
  });
  const viewer = await openPage();
  await viewer.evaluate(`playWhep('${url}/app/stream/abr?direction=whep')`);
  const widthOf = async () => ((await viewer.evaluate('received()')) as Received).width;
  await until('the middle quality', async () => (await widthOf()) === 480);
  const session = [...output.sessions.values()].find((one) => one instanceof WebrtcSession) as WebrtcSession;
  await session.changeRendition('240', false);
  await until('the lowest quality', async () => (await widthOf()) === 240);
  await session.changeRendition('960', false);
  await until('the best quality', async () => (await widthOf()) === 960);
  t.is(output.readers, 0);
});

test.serial(
  'a publisher that mutes in Chromium keeps the stream, and viewers get video again afterwards',
  async (t) => {
    const { url, openPage, live, application } = await start(t);
    const page = await openPage();
    await page.evaluate(`publishWhip('${url}/app/stream?direction=whip', { codec: 'H264', width: 320, height: 180 })`);
    const input = await live();
    const viewer = await openPage();
    await watch(viewer, `${url}/app/stream?direction=whep`);
    const framesOf = async () => ((await viewer.evaluate('received()')) as Received).frames;
    const brightness = async () => (await viewer.evaluate('brightness()')) as number;
    const arrived = { video: 0, audio: 0, data: 0, image: 0, subtitle: 0 };
    let soundAlone = 0;
    input.read({
      packet: ({ track }) => {
        arrived[track.type]++;
        soundAlone = track.type === 'audio' ? soundAlone + 1 : 0;
      },
    });
    await until('a picture', async () => (await brightness()) > SOME_LIGHT);

    await page.evaluate('disable(true)');
    await until('the picture is black', async () => (await brightness()) < SOME_LIGHT / 2);
    await page.evaluate('disable(false)');
    await until('there is light', async () => (await brightness()) > SOME_LIGHT);

    await page.evaluate('sendNothing("video")');
    await until('sound goes on without pictures', () => soundAlone > 100);
    const stopped = await framesOf();
    await page.evaluate('sendAgain("video")');
    await until('pictures go on', async () => (await framesOf()) > stopped + 30);
    t.true((await brightness()) > SOME_LIGHT);

    await page.evaluate('sendNothing("video", "audio")');
    const silent = await until('nothing comes', async () => {
      const count = arrived.video + arrived.audio;
      await page.evaluate('new Promise((done) => setTimeout(done, 500))');
      return arrived.video + arrived.audio === count && { ...arrived };
    });
    await page.evaluate('sendAgain("video", "audio")');
    const seen = await framesOf();
    await until(
      'picture and sound go on',
      async () => arrived.audio > silent.audio + 30 && (await framesOf()) > seen + 30,
    );
    t.is(application.stream('stream'), input);
    t.is(application.output('stream')?.sessions.size, 1);
  },
);

long('an ICE restart goes on with the stream', async (t) => {
  const { url, openPage, live } = await start(t, { ingest: { timeout: 600_000 } });
  const page = await openPage();
  await page.evaluate(`publishWhip('${url}/app/stream?direction=whip')`);
  const input = await live();
  const before = input.source.connection?.();
  t.is(await page.evaluate('restartIce()'), 200);
  let packets = 0;
  input.read({ packet: () => void packets++ });
  await until('media goes on', () => packets > 30);
  await until(
    'it is connected',
    () => page.evaluate("publishing.iceConnectionState === 'connected'") as Promise<boolean>,
  );
  t.false(input.closed);
  t.is(input.source.connection?.()?.localPort, before?.localPort);
  await page.evaluate('publishing.close()');
  await until('the end of DTLS ends the stream', () => input.closed);
});

long('Chromium publishes over ICE-TCP where its URL wants that', async (t) => {
  const { url, openPage, live } = await start(t, {
    ingest: { rtx: { enable: true } },
    ice: [
      { address: '127.0.0.1', protocol: 'udp' },
      { address: '127.0.0.1', protocol: 'tcp' },
    ],
  });
  const page = await openPage();
  await page.evaluate(`publishWhip('${url}/app/stream?direction=whip&transport=tcp')`);
  const input = await live();
  t.like(input.source.connection?.(), {
    transport: 'TCP',
    protocol: 'TCP',
    localAddress: '127.0.0.1',
    remoteAddress: '127.0.0.1',
  });
  t.regex((await page.evaluate('publishing.remoteDescription.sdp')) as string, /a=rtpmap:\d+ rtx\/90000/);
});
