import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openLlhls } from '../support/hls/llhls.ts';
import { audioPackets, audioTrack, AVC_HIGH, interleaved, videoPackets, videoTrack } from '../support/media/packets.ts';

const KEY = '16cf4232a86364b519e1982a27d90f1e';
const IDS = `<KeyId>572543f964e34dc68ba9ba9ef91d4364</KeyId><Key>${KEY}</Key><Iv>${'07'.repeat(16)}</Iv>`;
const FAIRPLAY = `<CencProtectScheme>cbcs</CencProtectScheme>${IDS}<FairPlayKeyUrl>skd://k</FairPlayKeyUrl>`;
const KEY_LINE = 'METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"';

/** Folder with a file that names keys; absent without a text. */
function infoFile(t: ExecutionContext, text?: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-drm-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'drm.xml');
  if (text !== undefined) writeFileSync(path, text);
  return path;
}

async function published(t: ExecutionContext, path: string, refuseClear = false) {
  const opened = await openLlhls(t, {
    llhls: { segmentDuration: 1, chunkDuration: 0.5, drm: { enable: true, infoFile: path, refuseClear } },
    hls: { segmentDuration: 1 },
  });
  const video = videoTrack({ id: 0, config: AVC_HIGH });
  const audio = audioTrack({ id: 1 });
  const { output } = opened.goLive([video, audio]);
  for (const packet of interleaved(videoPackets(video, { to: 4 }), audioPackets(audio, { to: 4 })))
    output.write(packet);
  return opened;
}

test('playlists name the keys, and initializations and media are encrypted', async (t) => {
  const path = infoFile(t, `<DRMInfo><DRM>${FAIRPLAY}</DRM></DRMInfo>`);
  const { get, children, lines } = await published(t, path);
  const master = await get('/app/stream/llhls.m3u8');
  t.is(master.statusCode, 200);
  t.is(master.body.split(`#EXT-X-SESSION-KEY:${KEY_LINE}\n`).length, 2);
  for (const list of (await children()).filter((uri) => uri.includes('.m3u8'))) {
    const { body } = await get(list);
    t.true(body.includes(`#EXT-X-KEY:${KEY_LINE}\n#EXT-X-MAP:`), body);
    t.is(body.split('#EXT-X-KEY').length, 2);
    const file = (name: RegExp) => get(new URL(name.exec(body)?.[1] ?? '', `http://kiln${list}`).pathname);
    const init = (await file(/MAP:URI="([^"]+)"/)).rawPayload;
    t.true(init.includes(/video/.test(list) ? 'encv' : 'enca'));
    t.true(init.includes('cbcs'));
    const segment = (await file(/\n(seg_[^\n]+)\n/)).rawPayload;
    t.is(segment.includes('senc'), /video/.test(list));
  }
  t.false(JSON.stringify(lines).includes(KEY));
});

test('playlists without low latency name the keys too', async (t) => {
  const path = infoFile(t, `<DRMInfo><DRM>${FAIRPLAY}</DRM></DRMInfo>`);
  const { get, children } = await published(t, path);
  for (const list of (await children('/app/stream/llhls.m3u8?_HLS_legacy=YES')).filter((uri) =>
    uri.includes('.m3u8'),
  )) {
    t.true(list.includes('_HLS_legacy=YES'), list);
    const { body } = await get(list);
    t.false(body.includes('#EXT-X-PART'));
    t.true(body.includes(`#EXT-X-KEY:${KEY_LINE}\n#EXT-X-MAP:`), body);
    t.is(body.split('#EXT-X-KEY').length, 2);
  }
});

const UNUSABLE: Readonly<Record<string, string | undefined>> = {
  'is missing': undefined,
  'is no XML': '<DRMInfo>',
  'has a key that is too short': `<DRMInfo><DRM>${FAIRPLAY.replace(KEY, KEY.slice(2))}</DRM></DRMInfo>`,
  'has an entry for another stream that is wrong': `<DRMInfo><DRM>${FAIRPLAY}</DRM><DRM/></DRMInfo>`,
};

for (const [what, text] of Object.entries(UNUSABLE)) {
  test(`a stream whose file ${what} is not published`, async (t) => {
    const { get, lines } = await published(t, infoFile(t, text));
    t.is((await get('/app/stream/llhls.m3u8')).statusCode, 404);
    const said = lines.filter(({ msg }) => msg === 'the stream is not published: its DRM file cannot be used');
    t.is(said.length, 1);
    t.false(JSON.stringify(lines).includes(KEY.slice(2)));
  });
}

test('RefuseClear closes HLS with MPEG-TS, and what no entry matches', async (t) => {
  const status = async (text: string, refuseClear: boolean): Promise<number[]> => {
    const { get } = await published(t, infoFile(t, text), refuseClear);
    const files = ['llhls.m3u8', 'ts:playlist.m3u8'];
    return Promise.all(files.map(async (file) => (await get(`/app/stream/${file}`)).statusCode));
  };
  const all = `<DRMInfo><DRM>${FAIRPLAY}</DRM></DRMInfo>`;
  t.deepEqual(await status(all, false), [200, 200]);
  t.deepEqual(await status(all, true), [200, 404]);
  t.deepEqual(await status(all.replace('<DRM>', '<DRM><StreamName>other</StreamName>'), true), [404, 404]);
});

test('a stream that no entry matches is published in clear, with a warning', async (t) => {
  const other = `<DRMInfo><DRM><StreamName>other</StreamName>${FAIRPLAY}</DRM></DRMInfo>`;
  const { get, lines } = await published(t, infoFile(t, other));
  const { statusCode, body } = await get('/app/stream/llhls.m3u8');
  t.is(statusCode, 200);
  t.false(body.includes('KEY'));
  t.true(lines.some(({ msg }) => /published in clear: no entry/.test(String(msg))));
});
