#!/usr/bin/env bash
# hls.js cannot go back to the first segment of a live stream whose EXTINF are rounded down, be it by a third of a microsecond.
#
# Expected: EXTINF with six digits, as ffmpeg writes it, is exact enough: a viewer who joined at the live edge and goes back to the
# beginning of a playlist that keeps all of its segments sees the beginning. RFC 8216 even allows whole milliseconds.
# What happens with hls.js 1.7.4 in Chromium 150 of Debian 12: hls.js puts the segment that it loads first at the sum of the durations
# before it. At 30 frames per second a segment of 61 frames lasts 2.0333333... s and is listed as 2.033333, so after 25 of them the sum is
# 8 us short, and the first key frame of the stream comes to lie 7 us before 0. There Media Source Extensions drop it, and with it all
# frames up to the next key frame. The first segment is loaded and appended, and nothing of it is ever in the buffer: a paused video stays
# `seeking` for good. With the same durations rounded up the beginning is shown.
# For packagers: round EXTINF up, or let the rounding errors of segments never add up to less than the media.
#
# Needs root for apt-get where chromium or ffmpeg is missing, and node with npm. Takes about a minute. Exits non-zero if the behaviour is
# another.
set -euo pipefail

for program in chromium ffmpeg; do
  command -v "$program" > /dev/null || { apt-get -q update && apt-get -qy install "$program"; } > /dev/null
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" hls.js@1.7.4
echo "hls.js 1.7.4, chromium $(dpkg-query -W -f '${Version}' chromium), ffmpeg $(dpkg-query -W -f '${Version}' ffmpeg), node $(node --version)"

cd "$folder"
ffmpeg -v error -f lavfi -i testsrc2=r=30:s=320x180 -t 120 -pix_fmt yuv420p -c:v libx264 -preset ultrafast -bf 0 -g 61 -keyint_min 61 \
  -sc_threshold 0 -hls_time 2 -hls_list_size 0 -hls_segment_type fmp4 -hls_fmp4_init_filename init.mp4 all.m3u8
grep -q '^#EXTINF:2.033333,' all.m3u8

cat > run.mjs << 'END'
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename } from 'node:path';

const PAGE = `<video id="v" muted></video><script src="/node_modules/hls.js/dist/hls.js"></script><script>
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const goesBack = async (playlist) => {
    const hls = new Hls();
    hls.loadSource(playlist);
    hls.attachMedia(v);
    v.play().catch(() => {});
    while (!(v.currentTime > 40)) await wait(100);
    v.pause();
    v.currentTime = 0.5;
    for (let left = 80; left > 0 && v.seeking; left--) await wait(100);
    const result = { shown: !v.seeking && v.currentTime < 2, at: v.currentTime, first: v.buffered.start(0) };
    hls.destroy();
    return result;
  };
  (async () => {
    const body = JSON.stringify([await goesBack('/down.m3u8'), await goesBack('/up.m3u8')]);
    fetch('/result', { method: 'POST', body });
  })();
</script>`;

const lines = (await readFile('all.m3u8', 'utf8')).split('\n').filter((line) => line !== '#EXT-X-ENDLIST' && line !== '');
const head = lines.findIndex((line) => line.startsWith('#EXTINF'));
const begun = Date.now();
/** All segments so far, 25 at the beginning. */
const playlist = () => {
  const count = 25 + Math.floor((Date.now() - begun) / (61_000 / 30));
  return [...lines.slice(0, head), ...lines.slice(head, head + 2 * count), ''].join('\n');
};
const server = createServer(async (request, response) => {
  if (request.url === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
  if (request.url === '/down.m3u8') return response.end(playlist());
  if (request.url === '/up.m3u8') return response.end(playlist().replaceAll('#EXTINF:2.033333,', '#EXTINF:2.033334,'));
  if (request.url !== '/result') {
    const name = request.url.endsWith('/hls.js') ? 'node_modules/hls.js/dist/hls.js' : basename(request.url);
    const file = await readFile(name).catch(() => undefined);
    return file === undefined ? response.writeHead(404).end() : response.end(file);
  }
  let text = '';
  for await (const piece of request) text += piece;
  response.end();
  browser.kill();
  server.close();
  clearTimeout(late);
  const [down, up] = JSON.parse(text);
  console.log(`EXTINF 2.033333: 0.5 s is ${down.shown ? '' : 'not '}shown (it is at ${down.at}), the buffer begins at ${down.first}`);
  console.log(`EXTINF 2.033334: 0.5 s is ${up.shown ? '' : 'not '}shown (it is at ${up.at}), the buffer begins at ${up.first}`);
  const isKnown = !down.shown && down.first > 2 && up.shown && up.first < 0.1;
  console.log(isKnown ? 'as described' : 'the behaviour has changed');
  process.exitCode = isKnown ? 0 : 1;
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const url = `http://127.0.0.1:${server.address().port}/`;
const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--autoplay-policy=no-user-gesture-required', `--user-data-dir=${process.cwd()}/profile`];
const browser = execFile('chromium', [...flags, url], () => undefined);
const late = setTimeout(() => { console.error('the page has not answered'); browser.kill(); process.exit(1); }, 120_000);
END
node run.mjs
