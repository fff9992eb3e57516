import { execFile } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { FileServer } from '../support/hls/file-server.ts';
import { codecsOf, probe } from '../support/media/probe.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { shared } from '../support/runner/shared.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const run = promisify(execFile);
const STREAMS = '/v1/vhosts/default/apps/app/streams';
const BASIC = `Basic ${Buffer.from('user:pass').toString('base64')}`;

interface Statistics {
  readonly providers: { readonly connections: Readonly<Record<string, number>> };
}

const teardown = new Teardown();
test.after.always(() => teardown.run());

/** The server that pulls, and one that it can pull from. */
const pulling = shared(() => start({ providers: '<MPEGTS/>' }));
const origin = shared(() => start({ hls: '' }));

async function start(options: KilnOptions): Promise<Kiln> {
  const kiln = await Kiln.start(options);
  teardown.teardown(() => kiln.stop());
  return kiln;
}

async function pull(t: ExecutionContext, kiln: Kiln, name: string, urls: readonly string[], properties = {}) {
  const { status, body } = await kiln.api<{ readonly message: string }>(STREAMS, 'POST', { name, urls, properties });
  t.is(status, 201, `${JSON.stringify(body)}\n${kiln.log}`);
  t.teardown(() => kiln.api(`${STREAMS}/${name}`, 'DELETE'));
  return await kiln.liveStream(name);
}

/** A player decodes some seconds of a live stream without a complaint. */
async function plays(t: ExecutionContext, kiln: Kiln, name: string): Promise<void> {
  const url = kiln.httpUrl(`/app/${name}/llhls.m3u8`);
  await until('it plays', async () => (await fetch(url)).status === 200);
  t.deepEqual(codecsOf(await probe(url)), ['aac', 'h264']);
  // It warns of "duplicated MOOV" atoms: of a live playlist with initializations it reads them again after each reload, whoever made it.
  const strict = ['-v', 'error', '-xerror', '-err_detect', 'explode'];
  const { stderr } = await run('ffmpeg', [...strict, '-t', '5', '-i', url, '-map', '0', '-f', 'null', '-'], {
    timeout: PATIENCE_MS,
  });
  t.is(stderr, '');
}

test.serial('a live stream plays: by its best variant, with a password, cookies and redirects', async (t) => {
  const server = await FileServer.start(t, ({ url = '', headers }, response) => {
    if (url === '/start.m3u8') {
      if (headers.authorization !== BASIC) response.writeHead(401).end();
      else response.writeHead(302, { Location: '/master.m3u8', 'Set-Cookie': 'node=7; Path=/' }).end();
      return true;
    }
    if (headers.cookie === 'node=7' && headers.authorization === BASIC) return false;
    response.writeHead(403).end();
    return true;
  });
  const [low, high] = ['low', 'high'].map(
    (name, at) => `#EXT-X-STREAM-INF:BANDWIDTH=${at + 1}00000,CODECS="avc1.42c01e,mp4a.40.2"\n${name}.m3u8\n`,
  );
  const other = '#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS="dvh1.05.06,mp4a.40.2"\nother.m3u8\n';
  server.write('master.m3u8', `#EXTM3U\n${low}${high}${other}`);
  await server.live('high.m3u8');
  const kiln = await pulling();
  const url = `http://user:pass@${server.host}/start.m3u8`;
  const { input } = await pull(t, kiln, 'live', [url], { persistent: true });
  t.is(input.sourceType, 'Unknown');
  const statistics = await kiln.api<Statistics>('/v2/stats/current/vhosts/default/apps/app');
  t.like(statistics.body.response.providers.connections, { hlspull: 1, mpegts: 0 });
  await plays(t, kiln, 'live');
  t.false(server.asked.includes('/low.m3u8'));
  await server.leave();
  await until('it is reported', () => /pulling the stream failed/.test(kiln.log));
  await server.listen();
  const asked = server.asked.length;
  await until('it comes again', () => server.asked.slice(asked).some((path) => path.endsWith('.ts')));
  await plays(t, kiln, 'live');
  t.notRegex(kiln.log, /pass@/);
});

test.serial('live fragmented MP4 plays, with its audio beside its video or in a playlist of its own', async (t) => {
  const server = await FileServer.start(t);
  const form = ['-hls_segment_type', 'fmp4'];
  await server.live('mp4.m3u8', ...form);
  await server.liveSeparate('apart', ...form);
  const kiln = await pulling();
  for (const name of ['mp4', 'apart']) {
    await pull(t, kiln, name, [server.url(`${name}.m3u8`)]);
    await plays(t, kiln, name);
  }
});

test.serial('a stream ends with its playlist', async (t) => {
  const server = await FileServer.start(t);
  await server.ended('short.m3u8', 4);
  const kiln = await pulling();
  await pull(t, kiln, 'short', [server.url('short.m3u8?token=1')]);
  await until('it is over', async () => (await kiln.stream('short')).status === 404);
  t.regex(kiln.log, /the playlist has ended/);
});

test.serial('the second URL is pulled when the first one sends a byte now and then', async (t) => {
  const server = await FileServer.start(t, ({ url = '' }, response) => {
    if (!url.startsWith('/slow.ts')) return false;
    response.writeHead(200);
    const timer = setInterval(() => response.write('G'), 100);
    response.once('close', () => clearInterval(timer));
    return true;
  });
  const segments = Array.from({ length: 9 }, (_, at) => `#EXTINF:1,\nslow.ts?${at}\n`).join('');
  server.write('slow.m3u8', `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${segments}`);
  await server.live('live.m3u8');
  const kiln = await pulling();
  await pull(t, kiln, 'failover', [server.url('slow.m3u8'), server.url('live.m3u8')], { retryCount: 1 });
  t.true(server.asked.some((path) => path.startsWith('/slow.ts')));
  await plays(t, kiln, 'failover');
});

test.serial('segments that come slowly, a few bytes at a time, play', async (t) => {
  const server = await FileServer.start(t, ({ url = '' }, response) => {
    // a segment that was deleted is answered as such
    if (!url.endsWith('.ts') || !server.has(url.slice(1))) return false;
    void trickle(server.read(url.slice(1)), response);
    return true;
  });
  await server.live('live.m3u8');
  const kiln = await pulling();
  await pull(t, kiln, 'slow', [server.url('live.m3u8')]);
  await plays(t, kiln, 'slow');
});

/** Sends a segment in some tenths of its duration. */
async function trickle(bytes: Buffer, response: ServerResponse): Promise<void> {
  response.writeHead(200);
  for (let at = 0; at < bytes.length; at += 1001) {
    response.write(bytes.subarray(at, at + 1001));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  response.end();
}

test.serial('a segment of a minute plays with all of its audio', async (t) => {
  const server = await FileServer.start(t);
  await server.ended('long.m3u8', 64, '-hls_time', '100');
  const kiln = await pulling();
  await pull(t, kiln, 'long', [server.url('long.m3u8')]);
  await plays(t, kiln, 'long');
  t.notRegex(kiln.log, /too many audio frames/);
});

test.serial('what cannot be pulled by HLS is told', async (t) => {
  const server = await FileServer.start(t, ({ url = '' }, response) => {
    if (url === '/endless.m3u8') {
      response.writeHead(200).write('#EXTM3U\n');
      const line = `#${'x'.repeat(100_000)}\n`;
      const more = (): void => {
        while (!response.destroyed && response.write(line));
      };
      response.on('drain', more);
      more();
      return true;
    }
    if (url === '/moved.m3u8') response.writeHead(302, { Location: 'http://169.254.169.254/x.m3u8' }).end();
    return url === '/moved.m3u8';
  });
  const list = (name: string, ...lines: string[]): string => {
    server.write(`${name}.m3u8`, ['#EXTM3U', '#EXT-X-TARGETDURATION:1', ...lines, ''].join('\n'));
    return server.url(`${name}.m3u8`);
  };
  server.write('page.m3u8', '<!doctype html>');
  server.write('page.ts', '<!doctype html>');
  server.write('short.key', 'abc');
  const kiln = await pulling();
  const vod = (...lines: string[]): string[] => [...lines, '#EXTINF:1,', 'page.ts', '#EXT-X-ENDLIST'];
  for (const [url, reason] of [
    [server.url('none.m3u8'), /none\.m3u8: the server answered with 404/],
    [server.url('page.m3u8'), /the answer is no playlist of HLS/],
    [server.url('moved.m3u8'), /pulling from 169\.254\.169\.254:80 is not allowed/],
    [server.url('endless.m3u8'), /endless\.m3u8 has more than 4194304 bytes/],
    [list('empty', '#EXT-X-ENDLIST'), /the playlist has ended/],
    [list('early'), /the playlist does not go on/],
    [
      list('local', '#EXTINF:1,', 'http://169.254.169.254/a.ts', '#EXT-X-ENDLIST'),
      /pulling from 169\.254\.169\.254:80/,
    ],
    [
      list('inner', '#EXTINF:1,', `http://127.0.0.1:${kiln.ports.api}/a.ts`, '#EXT-X-ENDLIST'),
      /belongs to this server/,
    ],
    [list('lost', '#EXTINF:1,', 'none.ts', '#EXTINF:1,', 'none.ts', '#EXTINF:1,', 'none.ts'), /answered with 404/],
    [list('text', ...vod()), /page\.ts is no transport stream/],
    [list('fmp4', ...vod('#EXT-X-MAP:URI="init.mp4"')), /init\.mp4: the server answered with 404/],
    [list('init', ...vod('#EXT-X-MAP:URI="page.ts"')), /its initialization is damaged/],
    [list('drm', ...vod('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"')), /encrypted by SAMPLE-AES/],
    [list('key', ...vod('#EXT-X-KEY:METHOD=AES-128,URI="short.key"')), /short\.key is no key of 16 bytes/],
    [list('keyless', ...vod('#EXT-X-KEY:METHOD=AES-128,URI="http://169.254.1.1/k"')), /pulling from 169\.254\.1\.1:80/],
  ] as const) {
    const { status } = await kiln.api(STREAMS, 'POST', { name: 'none', urls: [url] });
    t.is(status, 502, url);
    t.regex(kiln.log, reason, url);
  }
});

test.serial('one Kiln pulls the HLS of another, and its LL-HLS, whose audio is in a playlist of its own', async (t) => {
  const other = await origin();
  const publisher = publishPattern(other.rtmpUrl('talk'));
  t.teardown(() => publisher.stop());
  const kiln = await pulling();
  for (const [name, playlist] of [
    ['copy', 'ts:playlist.m3u8'],
    ['low', 'llhls.m3u8'],
  ] as const) {
    const url = other.httpUrl(`/app/talk/${playlist}`);
    await until('it plays', async () => (await fetch(url)).status === 200);
    await pull(t, kiln, name, [url]);
    await plays(t, kiln, name);
  }
});
