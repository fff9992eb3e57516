import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { openLlhls } from '../support/hls/llhls.ts';
import { feeder } from '../support/hls/llhls-nodes.ts';
import { audioTrack, AVC_HIGH, videoTrack } from '../support/media/packets.ts';
import { until } from '../support/time/until.ts';

const SECRET = 'f1'.repeat(16);
const elements = (digit: string): string =>
  `<KeyId>${digit.repeat(32)}</KeyId><Key>${SECRET}</Key><Iv>${'7'.repeat(32)}</Iv><FairPlayKeyUrl>skd://${digit}</FairPlayKeyUrl>`;

test('players rewind to the encrypted segments, with the keys of their time', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-drm-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const infoFile = join(folder, 'drm.xml');
  writeFileSync(
    infoFile,
    `<DRMInfo><DRM><CencProtectScheme>cbcs</CencProtectScheme>${elements('a')}<NextKey>${elements('b')}</NextKey></DRM></DRMInfo>`,
  );
  const past = join(folder, 'past');
  const { publisher, application, goLive, get, children } = await openLlhls(t, {
    llhls: {
      ...{ segmentDuration: 2, chunkDuration: 0.5, segmentCount: 3 },
      dvr: { enable: true, tempStoragePath: past, maxDuration: 600 },
      drm: { enable: true, infoFile },
    },
  });
  const { output } = goLive([videoTrack({ id: 0, config: AVC_HIGH }), audioTrack({ id: 1 })]);
  const feed = feeder(output);
  feed(4.3);
  const list = (await children()).find((uri) => uri.includes('chunklist_0_')) ?? '';
  const uriOf = (text: string, name: RegExp) => new URL(name.exec(text)?.[1] ?? '', `http://kiln${list}`).pathname;
  const early = (await get(list)).body;
  const [segment, init] = [uriOf(early, /\n(seg_0_0_[^\n]+)/), uriOf(early, /MAP:URI="([^"]+)"/)];
  const [segmentBytes, initBytes] = [(await get(segment)).rawPayload, (await get(init)).rawPayload];
  publisher.live(application, 'stream')?.stream.rotateKey();
  feed(24.3);
  const text = await until('the past is listed', async () => {
    const { body } = await get(list);
    return body.includes('#EXT-X-MEDIA-SEQUENCE:0\n') && body;
  });
  t.deepEqual(
    [...text.matchAll(/^#EXT-X-KEY:.*URI="([^"]+)"/gm)].map(([, uri]) => uri),
    ['skd://a', 'skd://b'],
  );
  t.is(text.split('#EXT-X-MAP').length, 3);
  t.true(text.indexOf('#EXT-X-KEY') < text.indexOf('seg_0_0_'));
  t.false(text.includes('DISCONTINUITY'));
  t.true((await get(segment)).rawPayload.equals(segmentBytes));
  t.true((await get(init)).rawPayload.equals(initBytes));
  t.true(initBytes.includes('encv'));
  const [, iFrames = ''] = /I-FRAME-STREAM-INF:.*URI="([^"]+)"/.exec((await get('/app/stream/llhls.m3u8')).body) ?? [];
  const pictures = (await get(new URL(iFrames, 'http://kiln/app/stream/llhls.m3u8').pathname)).body;
  t.is(pictures.split('#EXT-X-KEY').length, 3, pictures);
  const files = await until('the past is on the disk', () => {
    const all = existsSync(past) ? readdirSync(past, { recursive: true, withFileTypes: true }) : [];
    const read = all.flatMap((file) => (file.isFile() ? readFileSync(join(file.parentPath, file.name)) : []));
    const written = read.flatMap((bytes) => bytes.toString('latin1').match(/"name":"seg_0_/g) ?? []);
    return written.length > 8 && read;
  });
  const secret = Buffer.from(SECRET, 'hex');
  t.true(files.every((bytes) => !bytes.includes(SECRET) && !bytes.includes(secret)));
});
