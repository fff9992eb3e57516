import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { encode } from '../support/media/ffmpeg-bytes.ts';
import { Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { PlayerPage, type PlayerName } from '../support/hls/player-page.ts';
import { freePorts } from '../support/network/ports.ts';
import { sendInTime, withPause } from '../support/mpegts/ts-pause.ts';
import { until } from '../support/time/until.ts';

const SECONDS = 80;
const PAUSE = { from: 22, to: 47 };
/** Less than the pause, and far beyond what a viewer would bear: this machine may be busy. */
const MOST_STALL_MS = 18_000;
const MASTERS = ['llhls.m3u8', 'ts:playlist.m3u8'];
const PLAYERS: readonly PlayerName[] = ['hls', 'shaka', 'videojs'];
const PATTERN = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=10'];
const TONE = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p', '-g', '20'];
const ENCODED = [...PATTERN, ...TONE, ...X264, '-c:a', 'aac', '-ac', '2'];
const CONFIG = '<SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>';

let kiln: Kiln;
let ports: number[];
let browser: Awaited<ReturnType<typeof launchBrowser>>;

test.before(async () => {
  ports = freePorts(2);
  kiln = await Kiln.start({
    llhls: `<ChunkDuration>0.5</ChunkDuration>${CONFIG}`,
    hls: CONFIG,
    bindProviders: `<MPEGTS><Port>${ports.join(',')}</Port></MPEGTS>`,
    providers: `<MPEGTS><StreamMap><Stream><Name>udp_\${Port}</Name><Port>${ports.join(',')}/udp</Port></Stream></StreamMap></MPEGTS>`,
    srt: { provider: '<TimestampMode>Original</TimestampMode>' },
  });
  browser = await launchBrowser();
});

test.after.always(async () => {
  await browser?.close();
  await kiln?.stop();
});

/** Every player plays for some seconds without a long stall. */
async function play(t: import('ava').ExecutionContext, stream: string, masters: readonly string[], seconds: number) {
  const urls = masters.map((master) => kiln.httpUrl(`/app/${stream}/${master}`));
  const pages = await Promise.all(
    PLAYERS.flatMap((player) =>
      urls.map(async (url) => ({ url, page: await PlayerPage.open(browser, player, kiln.httpUrl('/readyz')) })),
    ),
  );
  t.teardown(() => Promise.all(pages.map(({ page }) => page.page.close())));
  for (const url of urls) await until(url, async () => (await fetch(url)).status === 200);
  await Promise.all(
    pages.map(async ({ url, page }) => {
      await page.play(url);
      await t.notThrowsAsync(page.plays(seconds, MOST_STALL_MS), url);
    }),
  );
}

for (const [index, what] of (['video', 'audio'] as const).entries()) {
  long(`${what} leaves the PMT and returns: players play on`, async (t) => {
    const ts = await encode([...ENCODED, '-t', `${SECONDS}`, '-f', 'mpegts']);
    const port = ports[index] as number;
    t.teardown(sendInTime(withPause(ts, { pid: 256 + index, ...PAUSE }), port));
    await play(t, `udp_${port}`, MASTERS, 45);
  });
}

long('times of MPEG-TS begin anew before they wrap: players play across that', async (t) => {
  const live = ENCODED.flatMap((option) => (option === '-f' ? ['-re', option] : [option]));
  const to = `srt://127.0.0.1:${kiln.ports.srt}?streamid=default/app/wrap`;
  const publisher = new Program('ffmpeg', ['-v', 'error', ...live, '-output_ts_offset', '94970', '-f', 'mpegts', to]);
  t.teardown(() => publisher.stop());
  const url = kiln.httpUrl('/app/wrap/ts:playlist.m3u8');
  const { promise: probed, resolve } = Promise.withResolvers<void>();
  const reads = async (): Promise<void> => {
    await until(url, async () => (await fetch(url)).status === 200);
    const reader = new Program('ffmpeg', ['-v', 'warning', '-i', url, '-t', '40', '-c', 'copy', '-f', 'null', '-']);
    t.teardown(() => reader.stop());
    t.is(await reader.exited(), 0);
    t.is(reader.stderr, '');
    resolve();
  };
  await Promise.all([play(t, 'wrap', ['ts:playlist.m3u8'], 45), reads(), probed]);
});
