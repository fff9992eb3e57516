import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { signUrl } from '../../src/access/policy/sign.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { PlaylistHistory } from '../support/hls/playlist-history.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { Kiln } from '../support/server/kiln.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { shared } from '../support/runner/shared.ts';
import { until } from '../support/time/until.ts';

const WINDOW = '<SegmentDuration>1</SegmentDuration><SegmentCount>3</SegmentCount>';

/** What is torn down behind a test, or behind all of them. */
type Undo = Pick<ExecutionContext, 'teardown'>;

async function start(t: Undo, folder: string, more = ''): Promise<Kiln> {
  const dvr = `<DVR><Enable>true</Enable><TempStoragePath>${folder}</TempStoragePath><MaxDuration>600</MaxDuration>${more}</DVR>`;
  const kiln = await Kiln.start({ llhls: `<ChunkDuration>0.25</ChunkDuration>${WINDOW}${dvr}`, hls: WINDOW + dvr });
  t.teardown(() => kiln.stop());
  return kiln;
}

async function temporary(t: Undo): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-rewind-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const PATTERN = { size: '320x180', rate: 10 };
const undo = new Teardown();
test.after.always(() => undo.run());

/** A server that no test restarts. */
const common = shared(async () => start(undo, await temporary(undo)));

/** That with a stream `s` which no test ends. */
const live = shared(async () => {
  const kiln = await common();
  const publisher = publishPattern(kiln.rtmpUrl('s'), PATTERN);
  undo.teardown(() => publisher.stop());
  return kiln;
});

async function text(url: string): Promise<string> {
  const answer = await fetch(url);
  return answer.ok ? await answer.text() : '';
}

/** Media playlists of a master playlist, those of pictures left out. */
async function listsOf(master: string): Promise<string[]> {
  return await until('the master playlist', async () => {
    const uris = urisOf(await text(master), master).filter((uri) => !uri.includes('/iframes_'));
    return uris.length > 0 && uris;
  });
}

const numbersIn = (list: string): number[] => [...list.matchAll(/^seg_[^_]+_(\d+)_/gm)].map(([, msn]) => Number(msn));

async function grown(list: string, segments: number): Promise<string> {
  return await until(`${segments} segments`, async () => {
    const playlist = await text(list);
    return numbersIn(playlist).length >= segments && playlist;
  });
}

test('players rewind over LL-HLS and HLS, and see the live edge alone if they ask for it', async (t) => {
  const kiln = await live();
  for (const master of ['/app/s/llhls.m3u8', '/app/s/ts:playlist.m3u8']) {
    const lists = await listsOf(kiln.httpUrl(master));
    for (const url of lists) {
      const playlist = await grown(url, 8);
      t.regex(playlist, /^#EXT-X-MEDIA-SEQUENCE:0$/m);
      t.deepEqual(
        numbersIn(playlist),
        numbersIn(playlist).map((_, index) => index),
      );
      const edge = await until('segments that have left the live edge', async () => {
        const list = await text(`${url}${url.includes('?') ? '&' : '?'}_HLS_rewind=NO`);
        return (numbersIn(list)[0] ?? 0) > 0 && list;
      });
      const whole = await text(url);
      t.is(numbersIn(whole)[0], 0);
      t.true(numbersIn(edge).length < numbersIn(whole).length);
      const [first = ''] = urisOf(playlist, url).filter((uri) => uri.includes('seg_'));
      const segment = await fetch(first);
      t.is(segment.status, 200);
      t.true((await segment.arrayBuffer()).byteLength > 1000);
    }
  }
});

test('after the server was killed, and its publisher has come back, players rewind to the segments before', async (t) => {
  const folder = await temporary(t);
  const kiln = await start(t, folder);
  const publish = () => publishPattern(kiln.rtmpUrl('s'), PATTERN);
  let publisher = publish();
  t.teardown(() => publisher.stop());
  const before = new Map<string, Buffer>();
  for (const master of ['/app/s/llhls.m3u8', '/app/s/ts:playlist.m3u8']) {
    for (const url of await listsOf(kiln.httpUrl(master))) {
      const all = urisOf(await grown(url, 6), url).filter((name) => /(seg|init)_/.test(name));
      // the newest one may not be on the disk yet
      for (const uri of all.slice(0, -1))
        before.set(new URL(uri).pathname.replace(/.*\//, ''), Buffer.from(await (await fetch(uri)).arrayBuffer()));
    }
  }
  await kiln.restart({});
  await publisher.stop();
  publisher = publish();
  let checked = 0;
  for (const master of ['/app/s/llhls.m3u8', '/app/s/ts:playlist.m3u8']) {
    for (const url of await listsOf(kiln.httpUrl(master))) {
      const playlist = await until('segments after the discontinuity', async () => {
        const list = await text(url);
        return /#EXT-X-DISCONTINUITY\n(.*\n)*.*seg_/.test(list) && list;
      });
      t.regex(playlist, /^#EXT-X-MEDIA-SEQUENCE:0$/m);
      const numbers = numbersIn(playlist);
      t.deepEqual(
        numbers,
        numbers.map((_, index) => index),
      );
      for (const uri of urisOf(playlist, url)) {
        const known = before.get(new URL(uri).pathname.replace(/.*\//, ''));
        if (known === undefined) continue;
        const answer = await fetch(uri);
        t.is(answer.status, 200, uri);
        t.true(known.equals(Buffer.from(await answer.arrayBuffer())), uri);
        checked++;
      }
    }
  }
  t.true(checked >= 15, `${checked} files`);
});

/** Seconds before the end at which a master playlist lets players start. */
const startIn = (master: string): number | undefined => {
  const [, seconds] = /^#EXT-X-START:TIME-OFFSET=-([\d.]+),PRECISE=YES$/m.exec(master) ?? [];
  return seconds === undefined ? undefined : Number(seconds);
};

/** Complete segments of a media playlist: when they begin, in milliseconds since the epoch, and how long they are, in seconds. */
const segmentsIn = (list: string): { at: number; seconds: number }[] =>
  [...list.matchAll(/^#EXT-X-PROGRAM-DATE-TIME:(.*)\n(?:#EXT-X-PART:.*\n)*#EXTINF:([\d.]+)/gm)].map(
    ([, date = '', seconds]) => ({ at: Date.parse(date), seconds: Number(seconds) }),
  );

test('players start at a time that they ask for', async (t) => {
  const kiln = await live();
  for (const path of ['/app/s/llhls.m3u8', '/app/s/ts:playlist.m3u8']) {
    const url = kiln.httpUrl(path);
    const [list = ''] = await listsOf(url);
    const segments = segmentsIn(await grown(list, 9));
    const [first, second] = segments as [{ at: number; seconds: number }, { at: number; seconds: number }];
    const master = await text(`${url}?start=${new Date(second.at + 250).toISOString()}&token=x`);
    const total = segments.reduce((sum, { seconds }) => sum + seconds, 0);
    const expected = total - first.seconds - 0.25;
    // meanwhile the playlist may have grown, by the segment that is not complete, too
    const grew = segmentsIn(await text(list)).reduce((sum, { seconds }) => sum + seconds, 0) - total;
    const offset = startIn(master) ?? 0;
    t.true(offset >= expected - 0.02 && offset < expected + grew + 2, `${offset} for ${expected}`);
    for (const uri of urisOf(master, url)) {
      t.false(uri.includes('start='), uri);
      t.true(uri.includes('token=x'), uri);
      t.is((await text(uri)).includes('EXT-X-START'), false);
    }
    const early = startIn(await text(`${url}?start=2001-01-01T00:00:00%2B01:00`)) ?? 0;
    t.true(early >= total - 0.02, `${early} for ${total}`);
    const late = await text(`${url}?start=${new Date(Date.now() + 3_600_000).toISOString()}`);
    t.true(late.includes('#EXT-X-STREAM-INF') && startIn(late) === undefined);
    for (const wrong of [
      'start=',
      'start=1000000000',
      'start=now',
      'start=2001-01-01T00:00:00Z&start=2001-01-01T00:00:00Z',
    ]) {
      const answer = await fetch(`${url}?${wrong}`);
      t.is(answer.status, 400, wrong);
      t.regex(await answer.text(), /Invalid start/);
    }
  }
});

test('with a signed policy the start is part of the signed URL', async (t) => {
  const signing = {
    policyQueryKeyName: 'policy',
    signatureQueryKeyName: 'signature',
    secretKey: 'a very secret key',
    algorithm: 'sha1',
  } as const;
  const folder = await temporary(t);
  const kiln = await Kiln.start({
    vhost: `<SignedPolicy><PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName>
      <SecretKey>${signing.secretKey}</SecretKey><Enables><Publishers>llhls</Publishers></Enables></SignedPolicy>`,
    llhls: `<ChunkDuration>0.25</ChunkDuration>${WINDOW}<DVR><Enable>true</Enable><TempStoragePath>${folder}</TempStoragePath></DVR>`,
  });
  t.teardown(() => kiln.stop());
  const publisher = publishPattern(kiln.rtmpUrl('s'), PATTERN);
  t.teardown(() => publisher.stop());
  const sign = (url: string): string => signUrl(url, { url_expire: Date.now() + 3_600_000 }, signing);
  const url = kiln.httpUrl('/app/s/llhls.m3u8');
  const [list = ''] = await listsOf(sign(url));
  const [first] = segmentsIn(await grown(list, 6));
  const time = (ms: number): string => new Date(ms).toISOString();
  const signed = sign(`${url}?start=${time(first?.at ?? 0)}`);
  t.true((startIn(await text(signed)) ?? 0) >= 5);
  const other = await fetch(signed.replace(/start=[^&]*/, `start=${time((first?.at ?? 0) + 1000)}`));
  t.is(other.status, 401);
  const added = await fetch(`${sign(url)}&start=${time(first?.at ?? 0)}`);
  t.is(added.status, 401);
  t.is((await fetch(sign(`${url}?start=yesterday`))).status, 400);
});

test('a stream that was ended by the API begins anew', async (t) => {
  const kiln = await common();
  const publish = () => publishPattern(kiln.rtmpUrl('anew'), PATTERN);
  const publisher = publish();
  t.teardown(() => publisher.stop());
  const [before = ''] = await listsOf(kiln.httpUrl('/app/anew/llhls.m3u8'));
  await grown(before, 4);
  const { status } = await kiln.api('/v1/vhosts/default/apps/app/streams/anew', 'DELETE');
  t.is(status, 200);
  await publisher.stop();
  const next = publish();
  t.teardown(() => next.stop());
  const nameOf = (url: string): string => new URL(url).pathname.split('/').at(-1) ?? '';
  const [after = ''] = await until('other playlists', async () => {
    const lists = await listsOf(kiln.httpUrl('/app/anew/llhls.m3u8'));
    return nameOf(lists[0] ?? '') !== nameOf(before) && lists;
  });
  t.regex(await grown(after, 2), /^#EXT-X-MEDIA-SEQUENCE:0$/m);
});

test('a stream that is concluded can be played from its beginning, and its dump begins there', async (t) => {
  const folder = await temporary(t);
  const kiln = await common();
  const publisher = publishPattern(kiln.rtmpUrl('over'), PATTERN);
  t.teardown(() => publisher.stop());
  const masters = ['/app/over/llhls.m3u8', '/app/over/ts:playlist.m3u8'];
  const lists = (await Promise.all(masters.map((path) => listsOf(kiln.httpUrl(path))))).flat();
  await Promise.all(lists.map((url) => grown(url, 8)));
  const api = '/v1/vhosts/default/apps/app/streams/over';
  const outputPath = join(folder, 'vod');
  t.is((await kiln.api(`${api}:startHlsDump`, 'POST', { outputStreamName: 'over', id: 'd', outputPath })).status, 200);
  t.is((await kiln.api(`${api}:concludeHlsLive`, 'POST', {})).status, 200);
  const dumped = await until('the dump is complete', async () => {
    const names = (await readdir(outputPath)).filter((name) => name.startsWith('chunklist_'));
    const texts = await Promise.all(names.map((name) => readFile(join(outputPath, name), 'utf8')));
    return texts.length === 2 && texts.every((list) => numbersIn(list).length >= 8) && texts;
  });
  for (const list of dumped) t.is(numbersIn(list)[0], 0);
  for (const url of lists) {
    const list = await until('the end', async () => {
      const there = await text(url);
      return there.endsWith('#EXT-X-ENDLIST\n') && there;
    });
    const numbers = numbersIn(list);
    t.true(numbers.length >= 8);
    t.deepEqual(
      numbers,
      numbers.map((_, index) => index),
    );
    // a playlist may not gain a type (RFC 8216 6.2.1)
    t.notRegex(list, /PLAYLIST-TYPE|EXT-X-PART|SERVER-CONTROL/);
    for (const uri of urisOf(list, url)) t.is((await fetch(uri)).status, 200, uri);
  }
});

test('the pictures of what players can rewind to are in a playlist of their own, and can be decoded alone', async (t) => {
  const kiln = await live();
  const master = kiln.httpUrl('/app/s/llhls.m3u8');
  const [, attributes = '', uri = ''] = await until(
    'the master playlist',
    async () => /#EXT-X-I-FRAME-STREAM-INF:(.*),URI="([^"]+)"/.exec(await text(master)) ?? undefined,
  );
  t.regex(attributes, /^BANDWIDTH=\d+,RESOLUTION=320x180,CODECS="avc1\.[0-9a-f]{6}"$/);
  const list = new URL(uri, master).href;
  const playlist = await until('pictures', async () => {
    const found = await text(list);
    return found.split('BYTERANGE').length > 4 && found;
  });
  t.regex(playlist, /#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP:URI="init_/);
  const [map = '', ...segments] = urisOf(playlist, list);
  const bytes = [...playlist.matchAll(/#EXT-X-BYTERANGE:(\d+)@0/g)].map(([, length]) => Number(length));
  const init = Buffer.from(await (await fetch(map)).arrayBuffer());
  for (const [index, length] of bytes.slice(0, 5).entries()) {
    const answer = await fetch(segments[index] ?? '', { headers: { range: `bytes=0-${length - 1}` } });
    t.is(answer.status, 206);
    const media = Buffer.from(await answer.arrayBuffer());
    t.is(media.length, length);
    const { stdout } = await decoded(Buffer.concat([init, media]));
    t.is(stdout.length, 320 * 180 * 3);
  }
});

/** Pictures that ffmpeg decodes of a file: bytes of 24 bits for each dot. */
async function decoded(file: Buffer): Promise<{ readonly stdout: Buffer }> {
  const child = spawn('ffmpeg', ['-v', 'error', '-i', 'pipe:0', '-f', 'rawvideo', '-pix_fmt', 'rgb24', 'pipe:1']);
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin.on('error', () => undefined);
  child.stdin.end(file);
  await once(child, 'close');
  return { stdout: Buffer.concat(chunks) };
}

test('hls.js shows pictures of earlier moments beside the stream that plays', async (t) => {
  const kiln = await live();
  const master = kiln.httpUrl('/app/s/llhls.m3u8');
  const [, picture = ''] = await listsOf(master);
  await grown(picture, 8);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await page.goto(kiln.httpUrl('/livez'));
  await page.addScriptTag({ content: hlsScripts() });
  const content = `
    const [video, preview] = [0, 1].map(() => document.body.appendChild(Object.assign(document.createElement('video'), { muted: true })));
    const hls = new Hls();
    watchHls(hls);
    hls.loadSource('${master}');
    hls.attachMedia(video);
    video.play();
    let pictures;
    hls.on(Hls.Events.LEVEL_UPDATED, () => {
      if (pictures !== undefined) return;
      pictures = hls.createIFramePlayer();
      watchHls(pictures);
      pictures.attachMedia(preview);
    });
    const colours = () => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 32, height: 18 });
      const context = canvas.getContext('2d');
      context.drawImage(preview, 0, 0, 32, 18);
      return context.getImageData(0, 0, 32, 18).data.join();
    };
  `;
  await page.addScriptTag({ content });
  await page.waitForFunction('video.currentTime > 0 && pictures !== undefined');
  const seen = new Set<string>();
  for (const seconds of [1, 5, 3]) {
    await page.evaluate(`pictures.loadMediaAt(${seconds})`);
    await page.waitForFunction(`preview.readyState >= 2 && Math.abs(preview.currentTime - ${seconds}) < 1`);
    seen.add(await page.evaluate<string>('colours()'));
  }
  t.is(seen.size, 3);
  t.deepEqual(await page.evaluate('faults'), []);
});

test('playlists that reach back over the death of the server break no rule of HLS', async (t) => {
  const kiln = await start(t, await temporary(t));
  const publish = () => publishPattern(kiln.rtmpUrl('s'), PATTERN);
  let publisher = publish();
  t.teardown(() => publisher.stop());
  const histories = ['/app/s/llhls.m3u8', '/app/s/ts:playlist.m3u8'].map((path) => {
    const master = kiln.httpUrl(path);
    let lists: string[] = [];
    const nameOf = (url: string): string => new URL(url).pathname.split('/').at(-1) ?? '';
    /** Sessions are others after the restart. */
    const get = async (url: string): Promise<string | undefined> => {
      const now = lists.find((list) => nameOf(list) === nameOf(url)) ?? url;
      const answer = await fetch(now + new URL(url).search).catch(() => undefined);
      if (answer?.status !== 200) return undefined;
      const body = await answer.text();
      if (url === master) lists = urisOf(body, master);
      return body;
    };
    return { list: () => lists[0], history: new PlaylistHistory(get, master) };
  });
  const watch = (isEnough: (list: string) => boolean) =>
    Promise.all(
      histories.map(({ list, history }) =>
        until('enough of the playlist', async () => {
          await history.look();
          const url = list();
          return url !== undefined && history.size > 5 && isEnough(await text(url));
        }),
      ),
    );
  await watch((list) => numbersIn(list).length >= 8);
  await kiln.restart({});
  await publisher.stop();
  publisher = publish();
  await watch((list) => /#EXT-X-DISCONTINUITY\n(.*\n)*.*seg_(.*\n)*.*seg_(.*\n)*.*seg_/.test(list));
  for (const { history } of histories) {
    // gaps are as long as segments, and may be more than there was time for before the server was back
    t.deepEqual(history.broken(['dates-overlap']), []);
  }
});
