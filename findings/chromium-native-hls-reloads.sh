#!/usr/bin/env bash
# Chromium's own HLS player reloads a live media playlist as fast as the server answers.
#
# Expected (RFC 8216 section 6.3.4): after a reload that brought something new a client waits for the target duration, and after one that
# brought nothing new for half of it. With a target duration of 2 s that is at most one request for the playlist in a second.
# What happens with Chromium 150 of Debian 12: tens of requests in a second, all of which get the same bytes most of the time. It plays
# well meanwhile, so nobody notices but the server. `Cache-Control: max-age=1` on the playlist takes nearly all of them away from the
# server; a page that asks `Hls.isSupported()` before `canPlayType()` does not meet this player at all.
#
# Needs root for apt-get where chromium or ffmpeg is missing, and node. Takes about a minute. Exits non-zero if the behaviour is another.
set -euo pipefail

for program in chromium ffmpeg; do
  command -v "$program" > /dev/null || { apt-get -q update && apt-get -qy install "$program"; } > /dev/null
done
version=$(dpkg-query -W -f '${Version}' chromium)
echo "chromium $version, node $(node --version)"
[[ $version == 150.* ]] || echo "this was written for version 150: the behaviour may be another"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ffmpeg -v error -f lavfi -i testsrc2=s=320x180:r=25 -f lavfi -i sine=440:r=48000 -t 60 -c:v libx264 -preset ultrafast -pix_fmt yuv420p \
  -g 50 -keyint_min 50 -sc_threshold 0 -c:a aac -ac 2 -f hls -hls_time 2 -hls_list_size 0 -hls_segment_filename "$folder/%d.ts" "$folder/all.m3u8"

cat > "$folder/count.mjs" << 'END'
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const [folder, cacheControl] = process.argv.slice(2);
const TARGET_MS = 2000;
const PAGE = `<video id="v" muted autoplay></video><script>
  v.src = '/live.m3u8';
  setInterval(() => fetch('/at?' + v.currentTime + ' ' + (v.error ? v.error.message : '')), 1000);
</script>`;
const begun = Date.now();
let requests = 0;
let bodies = new Set();
let at = '';
/** A window of three segments that goes on by one each two seconds. */
const playlist = () => {
  const first = Math.floor((Date.now() - begun) / TARGET_MS);
  const segments = [0, 1, 2].map((index) => `#EXTINF:2.000,\n${first + index}.ts\n`);
  return `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:${first}\n${segments.join('')}`;
};
const server = createServer(async (request, response) => {
  const { url } = request;
  if (url === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
  if (url.startsWith('/at?')) {
    at = decodeURIComponent(url.slice(4));
    return response.end();
  }
  if (url === '/live.m3u8') {
    requests++;
    const body = playlist();
    bodies.add(body);
    response.setHeader('content-type', 'application/vnd.apple.mpegurl').setHeader('cache-control', cacheControl);
    return response.end(body);
  }
  const media = await readFile(`${folder}${url}`).catch(() => undefined);
  response.writeHead(media === undefined ? 404 : 200, { 'content-type': 'video/mp2t' }).end(media);
});
server.listen(0, '127.0.0.1', () => {
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--autoplay-policy=no-user-gesture-required'];
  const profile = `--user-data-dir=${folder}/profile-${process.pid}`;
  const browser = execFile('chromium', [...flags, profile, '--remote-debugging-port=0', `http://127.0.0.1:${server.address().port}/`]);
  const started = Date.now();
  const wait = setInterval(() => {
    if (Date.now() - started > 30_000) {
      console.error('it does not play');
      browser.kill();
      process.exit(1);
    }
    if (!(parseFloat(at) > 2)) return;
    clearInterval(wait);
    requests = 0;
    bodies = new Set();
    setTimeout(() => {
      const perSecond = requests / 10;
      console.error(`Cache-Control: ${cacheControl}: ${perSecond} playlist requests a second, ${bodies.size} different bodies in 10 s, playing at ${at}`);
      console.log(perSecond);
      browser.once('exit', () => process.exit(0));
      browser.kill();
    }, 10_000);
  }, 200);
});
END

plain=$(node "$folder/count.mjs" "$folder" no-cache)
cached=$(node "$folder/count.mjs" "$folder" max-age=1)
node -e '
  const [plain, cached] = process.argv.slice(1).map(Number);
  const isKnown = plain > 5 && cached < 3;
  console.log(isKnown ? "as described" : "the behaviour has changed");
  process.exit(isKnown ? 0 : 1);
' "$plain" "$cached"
