import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { admissionsXml, startAdmissions } from '../support/access/admissions.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { BYPASS, ladderXml } from '../support/media/ladder-config.ts';
import { long } from '../support/runner/long.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';

const run = promisify(execFile);
const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const LLHLS = '<SegmentDuration>1</SegmentDuration><SegmentCount>6</SegmentCount><ChunkDuration>0.5</ChunkDuration>';
const SOUND = '<Audio><Name>sound</Name><Bypass>true</Bypass></Audio>';
const PICTURES = '<Image><Name>jpeg</Name><Codec>jpeg</Codec><Framerate>1</Framerate><Width>128</Width></Image>';
const SECOND =
  '</Application><Application><Name>second</Name><Type>live</Type><Providers><RTMP/><SRT/><WebRTC/></Providers>' +
  '<Publishers><LLHLS/><WebRTC/><SRT/><Thumbnail/></Publishers>';
const LIFETIME_MS = 5000;
/** Far beyond what a viewer would bear: this machine may be busy. */
const MOST_STALL_MS = 30_000;
const [WHIP, WHEP, OVENPLAYER, OVENLIVEKIT] = [
  '../support/webrtc/whip-publisher.js',
  '../support/webrtc/whep-player.js',
  'ovenplayer/dist/ovenplayer.js',
  'ovenlivekit/dist/OvenLiveKit.min.js',
].map((specifier) => fileURLToPath(import.meta.resolve(specifier))) as [string, string, string, string];

/** What the control server does with a client, which asks for it in its URL. */
type Fate = 'allow' | 'refuse' | 'redirect' | 'lifetime';

const endings: (() => unknown)[] = [];
const control = await startAdmissions(
  { teardown: (ending: () => unknown) => void endings.push(ending) },
  ({ url, direction }) => {
    const fate = /[?&]do=([^&]*)/.exec(url)?.[1] as Fate;
    if (fate === 'refuse') return { allowed: false, reason: 'not paid' };
    if (fate === 'lifetime') return { allowed: true, lifetime: LIFETIME_MS };
    if (fate === 'allow') return { allowed: true };
    const new_url =
      direction === 'incoming'
        ? url.replace(/\/app\/([^/?]+)/, '/second/moved-$1')
        : url.replace('/second/nothing', '/app/live');
    return { allowed: true, new_url };
  },
);
const kiln = await Kiln.start({
  vhost: admissionsXml(control),
  srt: {},
  whip: true,
  llhls: LLHLS,
  publishers: '<Thumbnail/>',
  application: ladderXml([BYPASS, SOUND, PICTURES]) + SECOND,
});
const browser = await launchBrowser();
test.after.always(async () => {
  await browser.close();
  await kiln.stop();
  for (const end of endings) end();
});

/** What a client asks for, by name: how many clients ask, one after the other, does not matter. */
const asks = (who: string, fate: Fate): string => `who=${who}-${fate}&do=${fate}`;

/** Each opening of a client that was allowed is closed once. */
async function closed(t: ExecutionContext, who: string, fate: Fate): Promise<void> {
  const name = `${who}-${fate}`;
  await until(`${name} has closed`, () => control.count('closing', name) >= control.count('opening', name));
  t.is(control.count('closing', name), control.count('opening', name), name);
}

/** A client that was refused is asked about, and has nothing that could be closed. */
function refused(t: ExecutionContext, who: string): void {
  t.true(control.count('opening', `${who}-refuse`) > 0, who);
  t.is(control.count('closing', `${who}-refuse`), 0, who);
}

const exists = async (app: string, stream: string): Promise<boolean> =>
  (await kiln.api(`/v1/vhosts/default/apps/${app}/streams/${stream}`)).status === 200;
const appears = (app: string, stream: string): Promise<unknown> =>
  until(`${app}/${stream} is there`, () => exists(app, stream));
const goes = (app: string, stream: string): Promise<unknown> =>
  until(`${app}/${stream} is gone`, async () => !(await exists(app, stream)));

/** A publisher that was sent elsewhere is there, and its closing says so. */
async function moves(t: ExecutionContext, who: string, stream: string, leave: () => Promise<unknown>): Promise<void> {
  await appears('second', `moved-${stream}`);
  t.false(await exists('app', stream));
  await leave();
  await closed(t, who, 'redirect');
  const closing = control.of(`${who}-redirect`).find(({ status }) => status === 'closing');
  t.true(closing?.new_url?.includes(`/second/moved-${stream}`), closing?.new_url);
}

const ENCODERS: Readonly<Record<string, (stream: string, query: string) => [format: string, url: string]>> = {
  rtmp: (stream, query) => ['flv', `${kiln.rtmpUrl(stream)}?${query}`],
  srt: (stream, query) => [
    'mpegts',
    `srt://127.0.0.1:${kiln.ports.srt}?streamid=${encodeURIComponent(`default/app/${stream}?${query}`)}&pkt_size=1316&connect_timeout=60000`,
  ],
};

for (const [who, addressOf] of Object.entries(ENCODERS)) {
  test(`ffmpeg publishes over ${who.toUpperCase()} as its control server decides`, async (t) => {
    const publish = (fate: Fate): Program => {
      const [format, url] = addressOf(`${who}-${fate}`, asks(who, fate));
      const program = new Program('ffmpeg', [...patternArguments(PICTURE), '-f', format, url]);
      t.teardown(() => program.stop());
      return program;
    };
    t.not(await publish('refuse').exited(), 0);
    t.false(await exists('app', `${who}-refuse`));
    refused(t, who);

    const allowed = publish('allow');
    await appears('app', `${who}-allow`);
    t.is(control.count('closing', `${who}-allow`), 0);
    await allowed.stop();
    await closed(t, who, 'allow');

    const moved = publish('redirect');
    await moves(t, who, `${who}-redirect`, () => moved.stop());

    const limited = publish('lifetime');
    // a slow machine may take all of its time to find out what it sends
    await until('it is admitted', () => control.count('opening', `${who}-lifetime`) > 0);
    await limited.exited();
    await until('its time is over', () => control.count('closing', `${who}-lifetime`) > 0);
    await goes('app', `${who}-lifetime`);
    await closed(t, who, 'lifetime');
  });
}

async function openPage(t: ExecutionContext): Promise<Page> {
  const page = await browser.newPage();
  t.teardown(() => page.close());
  await page.goto(kiln.httpUrl('/readyz'));
  await page.evaluate("document.body.appendChild(document.createElement('div')).id = 'player'");
  for (const path of [WHIP, WHEP, OVENPLAYER, OVENLIVEKIT]) await page.addScriptTag({ path });
  return page;
}

long('Chromium publishes over WHIP, with OvenLiveKit too, as its control server decides', async (t) => {
  const endpoint = (who: string, fate: Fate): string =>
    kiln.httpUrl(`/app/${who}-${fate}?direction=whip&${asks(who, fate)}`);
  const publish = async (fate: Fate): Promise<Page> => {
    const page = await openPage(t);
    await page.evaluate(`publishWhip('${endpoint('whip', fate)}', { codec: 'VP8', width: 160, height: 90 })`);
    return page;
  };
  await t.throwsAsync(publish('refuse'), { message: /Access denied/ });
  refused(t, 'whip');
  const allowed = await publish('allow');
  await appears('app', 'whip-allow');
  await allowed.evaluate('publishing.close()');
  await closed(t, 'whip', 'allow');
  const moved = await publish('redirect');
  await moves(t, 'whip', 'whip-redirect', () => moved.evaluate('publishing.close()'));
  const limited = await publish('lifetime');
  await appears('app', 'whip-lifetime');
  await goes('app', 'whip-lifetime');
  await closed(t, 'whip', 'lifetime');
  await until(
    'the page hears of it',
    () =>
      limited.evaluate("['disconnected', 'failed', 'closed'].includes(publishing.connectionState)") as Promise<boolean>,
  );

  const kit = await openPage(t);
  const publishing = kit.evaluate(`publishOven('${endpoint('kit', 'refuse')}')`).catch(() => 'thrown');
  const said = async () => (await kit.evaluate('window.failure')) ?? ((await publishing) === 'thrown' || undefined);
  t.truthy(await until('OvenLiveKit says that it was refused', said));
  refused(t, 'kit');
  await (await openPage(t)).evaluate(`publishOven('${endpoint('kit', 'allow')}', { preferredVideoFormat: 'H264' })`);
  await appears('app', 'kit-allow');
});

/** The path of the stream that viewers of a fate ask for. */
const path = (fate: Fate): string => (fate === 'redirect' ? '/second/nothing' : '/app/live');

let live: Program | undefined;
test.before(async () => {
  live = new Program('ffmpeg', [
    ...patternArguments(PICTURE),
    '-f',
    'flv',
    `${kiln.rtmpUrl('live')}?${asks('publisher', 'allow')}`,
  ]);
  await kiln.liveStream('live');
});
test.after.always(() => live?.stop());

long('OvenPlayer over WebRTC and libdatachannel over WHEP watch as their control server decides', async (t) => {
  const frames = (page: Page) => page.evaluate('received()') as Promise<{ readonly frames: number }>;
  const watch = async (fate: Fate): Promise<Page> => {
    const page = await openPage(t);
    await page.evaluate(`playOven('${kiln.httpUrl(path(fate)).replace('http', 'ws')}?${asks('oven', fate)}')`);
    return page;
  };
  const denied = await watch('refuse');
  await until('OvenPlayer says so', () => denied.evaluate('window.failure !== undefined') as Promise<boolean>);
  await denied.close();
  refused(t, 'oven');
  for (const fate of ['allow', 'redirect'] as const) {
    const page = await watch(fate);
    await until(`${fate}: a picture`, async () => (await frames(page)).frames > 5);
    await page.close();
    await closed(t, 'oven', fate);
  }
  const limited = await watch('lifetime');
  await until('its time is over', () => control.count('closing', 'oven-lifetime') > 0);
  await limited.close();
  await closed(t, 'oven', 'lifetime');

  const play = async (fate: Fate) => {
    const peer = new ViewerPeer({ audio: false });
    t.teardown(() => peer.close());
    const { url, headers } = await peer.play(kiln.httpUrl(`${path(fate)}?direction=whep&${asks('whep', fate)}`));
    await peer.until(() => peer.packets.video.length > 0);
    return { peer, leave: () => fetch(new URL(headers.get('location') as string, url), { method: 'DELETE' }) };
  };
  await t.throwsAsync(play('refuse'), { message: /^401: / });
  refused(t, 'whep');
  for (const fate of ['allow', 'redirect'] as const) {
    await (await play(fate)).leave();
    await closed(t, 'whep', fate);
  }
  const { peer } = await play('lifetime');
  await peer.until(() => peer.state !== 'connected');
  await closed(t, 'whep', 'lifetime');
});

for (const player of ['hls', 'ovenplayer'] as const) {
  long(`${player} plays LL-HLS as its control server decides`, async (t) => {
    const play = async (fate: Fate): Promise<PlayerPage> => {
      const page = await PlayerPage.open(browser, player, kiln.httpUrl('/readyz'));
      t.teardown(() => page.page.close());
      await page.play(kiln.httpUrl(`${path(fate)}/llhls.m3u8?${asks(player, fate)}`));
      return page;
    };
    const fails = ({ page }: PlayerPage): Promise<unknown> =>
      until('the player says so', () => page.evaluate('faults.length + notes.length > 0') as Promise<boolean>);
    const denied = await play('refuse');
    await fails(denied);
    await denied.page.close();
    refused(t, player);
    for (const fate of ['allow', 'redirect'] as const) {
      const page = await play(fate);
      await page.plays(1, MOST_STALL_MS);
      t.is(control.count('closing', `${player}-${fate}`), 0);
      await page.page.close();
      await closed(t, player, fate);
    }
    const limited = await play('lifetime');
    await fails(limited);
    await limited.page.close();
    await closed(t, player, 'lifetime');
  });
}

test('curl fetches a picture, and ffprobe looks at SRT, as the control server decides', async (t) => {
  const curl = async (fate: Fate): Promise<string> => {
    const url = kiln.httpUrl(`${path(fate)}/thumb.jpg?${asks('curl', fate)}`);
    return (await run('curl', ['-sS', '--max-time', '90', '-o', '/dev/null', '-w', '%{http_code}', url])).stdout;
  };
  t.is(await curl('refuse'), '401');
  for (const fate of ['allow', 'redirect', 'lifetime'] as const)
    await until(`${fate}: a picture`, async () => (await curl(fate)) === '200');
  t.false(control.list().some((call) => call.startsWith('closing curl')));

  const url = (fate: Fate): string =>
    `srt://127.0.0.1:${kiln.ports.srtPlay}?streamid=${encodeURIComponent(`default${path(fate)}?${asks('srtPlay', fate)}`)}&connect_timeout=60000`;
  const probe = (fate: Fate) =>
    run('ffprobe', ['-v', 'error', '-show_streams', url(fate)], { timeout: PATIENCE_MS }).then(({ stdout }) => stdout);
  await t.throwsAsync(probe('refuse'));
  refused(t, 'srtPlay');
  for (const fate of ['allow', 'redirect'] as const) {
    t.regex(await probe(fate), /codec_name=h264/);
    await closed(t, 'srtPlay', fate);
  }
  const viewer = new Program('ffmpeg', ['-v', 'error', '-i', url('lifetime'), '-f', 'null', '-']);
  t.teardown(() => viewer.stop());
  await viewer.exited();
  await closed(t, 'srtPlay', 'lifetime');
});
