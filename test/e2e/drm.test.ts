import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { FFMPEG7, Program, publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const ID = '572543f964e34dc68ba9ba9ef91d4364';
const KEY = '16cf4232a86364b519e1982a27d90f1e';
const PSSH = `000000327073736800000000edef8ba979d64acea3c827dcd51d21ed000000121210${ID}`;
const entryOf = (scheme: string): string =>
  `<DRM><StreamName>${scheme}</StreamName><CencProtectScheme>${scheme}</CencProtectScheme>` +
  `<KeyId>${ID}</KeyId><Key>${KEY}</Key><Iv>${ID}</Iv><Pssh>${PSSH}</Pssh></DRM>`;

const NEXT_ID = 'aa2543f964e34dc68ba9ba9ef91d4364';
const NEXT_KEY = '00cf4232a86364b519e1982a27d90f1e';
/** Entry of two keys, for a stream of its own. */
const rotating = (scheme: string): string =>
  entryOf(scheme)
    .replace(`<StreamName>${scheme}`, `<StreamName>${scheme}-rotating`)
    .replace(
      '</DRM>',
      `<NextKey><KeyId>${NEXT_ID}</KeyId><Key>${NEXT_KEY}</Key><Iv>${ID}</Iv><Pssh>${PSSH.replace(ID, NEXT_ID)}</Pssh></NextKey></DRM>`,
    );

/** Entry for another stream. */
const named = (scheme: string, name: string): string =>
  entryOf(scheme).replace(`<StreamName>${scheme}`, `<StreamName>${name}`);

const folder = mkdtempSync(join(tmpdir(), 'kiln-drm-'));
const infoFile = join(folder, 'drm.xml');
writeFileSync(
  infoFile,
  `<DRMInfo>${['cenc', 'cbcs'].map((scheme) => entryOf(scheme) + rotating(scheme) + named(scheme, `${scheme}-av1`)).join('')}</DRMInfo>`,
);
const kiln = await Kiln.start({
  llhls:
    '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration>' +
    `<DRM><Enable>true</Enable><InfoFile>${infoFile}</InfoFile></DRM>`,
});
const browser = await launchBrowser();
test.after.always(async () => {
  await browser.close();
  await kiln.stop();
  rmSync(folder, { recursive: true });
});

/** Far beyond what a viewer would bear: this machine may be busy. */
const MOST_STALL_MS = 60_000;

for (const scheme of ['cenc', 'cbcs']) {
  test(`Shaka Player plays ${scheme} with the key, and shows nothing with another one`, async (t) => {
    const publisher = publishPattern(kiln.rtmpUrl(scheme), { size: '160x90', rate: 10, bitrate: '100k' });
    t.teardown(() => publisher.stop());
    const url = kiln.httpUrl(`/app/${scheme}/llhls.m3u8`);
    await until('there is a playlist', async () => (await fetch(url)).status === 200);
    const open = async (key: string): Promise<PlayerPage> => {
      const page = await PlayerPage.open(browser, 'shaka', kiln.httpUrl('/readyz'));
      t.teardown(() => page.page.close());
      await page.play(url, { drm: { clearKeys: { [ID]: key } } });
      return page;
    };
    await t.notThrowsAsync((await open(KEY)).plays(4, MOST_STALL_MS));
    const { page } = await open('ff'.repeat(16));
    await until('the player gave up', async () => (await page.evaluate<number>('faults.length')) > 0);
    // it may have come to the first frame, which it cannot decode
    t.true((await page.evaluate<number>('played')) < 0.5);
  });
}

for (const scheme of ['cenc', 'cbcs']) {
  test(`Shaka Player plays on across rotations of the keys of ${scheme}`, async (t) => {
    const name = `${scheme}-rotating`;
    const publisher = publishPattern(kiln.rtmpUrl(name), { size: '160x90', rate: 10, bitrate: '100k' });
    t.teardown(() => publisher.stop());
    const url = kiln.httpUrl(`/app/${name}/llhls.m3u8`);
    await until('there is a playlist', async () => (await fetch(url)).status === 200);
    const page = await PlayerPage.open(browser, 'shaka', kiln.httpUrl('/readyz'));
    t.teardown(() => page.page.close());
    await page.play(url, { drm: { clearKeys: { [ID]: KEY, [NEXT_ID]: NEXT_KEY } } });
    await page.plays(3, MOST_STALL_MS);
    const master = await (await fetch(url)).text();
    const list = new URL(/\nchunklist[^\n]+|\n[^#\n]*chunklist[^\n]+/.exec(master)?.[0].trim() ?? '', url);
    for (let rotations = 1; rotations <= 2; rotations++) {
      const { status } = await kiln.api(`/v1/vhosts/default/apps/app/streams/${name}:rotateKey`, 'POST', {});
      t.is(status, 200);
      // as long as segments of both keys are in the playlist, however long the player takes
      const listed = until('both keys are listed', async () => {
        const text = await (await fetch(list)).text();
        return text.split('#EXT-X-KEY').length > 2 && text;
      });
      // two segments of two seconds, and then some
      const [text] = await Promise.all([listed, page.plays(6, MOST_STALL_MS)]);
      t.false(text.includes('#EXT-X-DISCONTINUITY\n'), text);
    }
    t.deepEqual(await page.page.evaluate('faults'), []);
  });
}

/** Four tiles in each frame, which is as many subsamples. */
const AV1_PATTERN = [
  ...['-v', 'error', '-re', '-f', 'lavfi', '-i', 'testsrc2=s=256x256:r=10', '-f', 'lavfi', '-i', 'sine=b=4:r=48000'],
  ...['-c:v', 'libsvtav1', '-preset', '12', '-g', '20', '-svtav1-params', 'tile-columns=1:tile-rows=1'],
  ...['-pix_fmt', 'yuv420p', '-c:a', 'aac', '-f', 'flv'],
];

for (const scheme of ['cenc', 'cbcs']) {
  test(`Shaka Player plays AV1 in ${scheme} with the key, and gives up with another one`, async (t) => {
    const name = `${scheme}-av1`;
    const publisher = new Program(FFMPEG7, [...AV1_PATTERN, kiln.rtmpUrl(name)]);
    t.teardown(() => publisher.stop());
    const url = kiln.httpUrl(`/app/${name}/llhls.m3u8`);
    const master = await until('there is a playlist', async () => {
      const answer = await fetch(url);
      return answer.status === 200 && answer.text();
    });
    t.regex(master, /CODECS="[^"]*av01/);
    const open = async (key: string): Promise<PlayerPage> => {
      const page = await PlayerPage.open(browser, 'shaka', kiln.httpUrl('/readyz'));
      t.teardown(() => page.page.close());
      await page.play(url, { drm: { clearKeys: { [ID]: key } } });
      return page;
    };
    await t.notThrowsAsync((await open(KEY)).plays(4, MOST_STALL_MS));
    // some noise may be shown before: a decoder of AV1 makes a picture of any data in a tile
    const { page } = await open('ff'.repeat(16));
    await until('the player gave up', async () => (await page.evaluate<number>('faults.length')) > 0);
  });
}
