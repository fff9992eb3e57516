import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { Program, publishPattern } from '../support/media/ffmpeg.ts';
import { HeldWay } from '../support/network/held-way.ts';
import { Kiln } from '../support/server/kiln.ts';
import { ladderXml, BYPASS, video } from '../support/media/ladder-config.ts';
import { PlayerPage, type PlayerName } from '../support/hls/player-page.ts';
import { until } from '../support/time/until.ts';

const run = promisify(execFile);

const rendition = (name: string) =>
  `<Rendition><Name>${name}</Name><Video>${name}</Video><Audio>sound</Audio></Rendition>`;
const playlist = (name: string, ...names: string[]) =>
  `<Playlist><Name>${name}</Name><FileName>${name}</FileName>${names.map(rendition).join('')}</Playlist>`;

const kiln = await Kiln.start({
  llhls: '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>',
  application: ladderXml([BYPASS, '<Audio><Name>sound</Name><Bypass>true</Bypass></Audio>', video(46, 50)], {
    playlists: playlist('one', 'source') + playlist('several', 'source', '46p'),
  }),
});
const browser = await launchBrowser();
/** Small and slow: ten pages decode and draw it at once. */
const PICTURE = { size: '160x90', rate: 10, bitrate: '100k' };

interface Judge {
  readonly player: PlayerName;
  /** Where it is not to play as it comes. */
  readonly config?: object;
  readonly playlists: readonly string[];
}

const JUDGES: Readonly<Record<string, Judge>> = {
  'hls.js': { player: 'hls', playlists: ['one', 'several'] },
  'hls.js without parts': { player: 'hls', config: { lowLatencyMode: false }, playlists: ['several'] },
  OvenPlayer: { player: 'ovenplayer', playlists: ['several'] },
  'video.js': { player: 'videojs', playlists: ['one', 'several'] },
  'video.js without parts': { player: 'videojs', config: { llhls: false }, playlists: ['several'] },
  'Shaka Player': { player: 'shaka', playlists: ['one', 'several'] },
  'Shaka Player without parts': { player: 'shaka', config: { lowLatencyMode: false }, playlists: ['several'] },
};

/** Far beyond what a viewer would bear: this machine may be busy. */
const MOST_STALL_MS = 20_000;
const MORE_SECONDS = 12;

const all = Object.entries(JUDGES).flatMap(([name, { playlists, ...judge }]) =>
  playlists.map((file) => ({
    title: `${name}, ${file === 'one' ? 'one rendition' : 'several renditions'}`,
    file,
    ...judge,
  })),
);
const pages = await Promise.all(
  all.map(async (judge) => ({
    ...judge,
    page: await PlayerPage.open(browser, judge.player, kiln.httpUrl('/readyz')),
  })),
);

/** Those who have not yet played what came before the publisher left, well or badly. */
let before = all.length;
let publisher = publishPattern(kiln.rtmpUrl('live'), PICTURE);

test.after.always(async () => {
  await publisher.stop();
  await browser.close();
  await kiln.stop();
});

/** The publisher leaves when all have played, and returns. */
const returned = (async () => {
  await until('all players have played', () => before === 0, 110_000);
  // Shaka Player itself may stall after an outage of some seconds, so nobody waits for an encoder to start
  const way = await HeldWay.open(kiln.ports.rtmp);
  const next = publishPattern(`rtmp://127.0.0.1:${way.port}/app/live`, PICTURE);
  await until('it wants to publish', () => way.held > 0);
  await publisher.stop();
  publisher = next;
  await until('the stream is gone', async () => (await kiln.stream('live')).status === 404);
  way.release();
  await kiln.liveStream('live');
})();
returned.catch(() => {});

/** Shaka Player itself may stall for good after an outage: then it has to play when it is loaded again. */
async function isLoadedAgain(t: ExecutionContext, stall: Error, url: string, config?: object): Promise<void> {
  if (!stall.message.includes('"faults": []')) throw stall;
  const again = await PlayerPage.open(browser, 'shaka', kiln.httpUrl('/readyz'));
  t.teardown(() => again.page.close());
  await again.play(url, config);
  await again.plays(MORE_SECONDS, MOST_STALL_MS);
}

for (const { title, file, player, config, page } of pages) {
  test(`${title}: plays from the first second of a stream on, and on when its publisher returns`, async (t) => {
    t.teardown(() => page.page.close());
    const url = kiln.httpUrl(`/app/live/${file}.m3u8`);
    try {
      await until('there is a playlist', async () => (await fetch(url)).status === 200);
      await page.play(url, config);
      await t.notThrowsAsync(page.plays(6, MOST_STALL_MS));
    } finally {
      before--;
    }
    await returned;
    // more than any of them has in its buffer
    const goesOn = page.plays(MORE_SECONDS, MOST_STALL_MS);
    await t.notThrowsAsync(
      player === 'shaka' ? goesOn.catch((error: Error) => isLoadedAgain(t, error, url, config)) : goesOn,
    );
  });
}

const ONE = kiln.httpUrl('/app/live/one.m3u8');
const isThere = async (): Promise<boolean> => (await fetch(ONE)).status === 200;

test('GStreamer (hlsdemux2): plays from the first second of a stream on', async (t) => {
  await until('there is a playlist', isThere);
  const source = ['uridecodebin3', `uri=${ONE}`, 'name=source', 'source.', '!', 'queue', '!', 'videoconvert', '!'];
  const env = { ...process.env, GST_PLUGIN_FEATURE_RANK: 'hlsdemux2:MAX' };
  const player = new Program('gst-launch-1.0', ['-q', ...source, 'fakesink', 'sync=true', 'num-buffers=50'], env);
  t.teardown(() => player.stop());
  t.is(await player.exited(), 0, player.stderr);
});

test('VLC: plays from the first second of a stream on', async (t) => {
  await until('there is a playlist', isThere);
  const folder = await mkdtemp(join(tmpdir(), 'kiln-vlc-'));
  await chmod(folder, 0o777);
  const file = join(folder, 'played.ts');
  // it refuses to be root
  const nobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];
  const played = `#std{access=file,mux=ts,dst=${file}}`;
  const player = new Program('setpriv', [...nobody, 'cvlc', '-I', 'dummy', '--no-dbus', '--sout', played, ONE], {
    ...process.env,
    HOME: folder,
  });
  t.teardown(async () => {
    await player.stop();
    await rm(folder, { recursive: true });
  });
  const count = ['-v', 'quiet', '-select_streams', 'v', '-count_packets', '-show_entries', 'stream=nb_read_packets'];
  await until('five seconds were played', async () => {
    const { stdout } = await run('ffprobe', [...count, '-of', 'csv=p=0', file]).catch(() => ({ stdout: '' }));
    return Number.parseInt(stdout, 10) >= 50;
  });
  t.true(player.running, player.stderr);
});
