#!/usr/bin/env bash
# hls.js removes variants of H.264 level 1b that Chromium plays, but only those with a FRAME-RATE above 30, be it 30.003.
#
# Expected: a codec that MediaSource.isTypeSupported() takes is also supported for MediaCapabilities.decodingInfo(), and a frame rate that
# is three thousandths above another changes nothing.
# What happens with hls.js 1.7.4 in Chromium 150 of Debian 12: for avc1.640009 (level_idc 9, which is level 1b of the High profile; x264
# writes it for small pictures) isTypeSupported() is true and decodingInfo() says `supported: false`; level 1 (avc1.64000a) has both.
# hls.js asks decodingInfo() only about demanding variants, for one those with more than 30 frames per second, and takes the ones that are
# not supported out of the list for good, with a line in its debug log and no error event. With FRAME-RATE=30.000 the same variant plays.
# For users: a rendition is missing in the player, and whether it is depends on how exactly the packager has measured its frame rate.
#
# Needs root for apt-get where chromium or ffmpeg is missing, and node with npm. Takes about 20 seconds. Exits non-zero if the behaviour
# is another.
set -euo pipefail

for program in chromium ffmpeg; do
  command -v "$program" > /dev/null || { apt-get -q update && apt-get -qy install "$program"; } > /dev/null
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" hls.js@1.7.4
echo "hls.js 1.7.4, chromium $(dpkg-query -W -f '${Version}' chromium), ffmpeg $(dpkg-query -W -f '${Version}' ffmpeg), node $(node --version)"

cd "$folder"
for variant in small:128x72:1 large:176x144:1b; do
  IFS=: read -r name size level <<< "$variant"
  ffmpeg -v error -f lavfi -i "testsrc2=r=30:s=$size" -t 20 -pix_fmt yuv420p -c:v libx264 -profile:v high -level "$level" -g 60 \
    -hls_time 2 -hls_list_size 0 -hls_segment_type fmp4 -hls_fmp4_init_filename "$name.mp4" "$name.m3u8"
done
for rate in 30.000 30.003; do
  cat > "$rate.m3u8" << END
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-STREAM-INF:BANDWIDTH=200000,RESOLUTION=128x72,FRAME-RATE=30.000,CODECS="avc1.64000a"
small.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=176x144,FRAME-RATE=$rate,CODECS="avc1.640009"
large.m3u8
END
done

cat > run.mjs << 'END'
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename } from 'node:path';

const PAGE = `<video id="v" muted></video><script src="/node_modules/hls.js/dist/hls.js"></script><script>
  const type = (codec) => 'video/mp4; codecs="' + codec + '"';
  const capable = async (codec) => {
    const video = { contentType: type(codec), width: 128, height: 72, bitrate: 100000, framerate: 30 };
    const { supported } = await navigator.mediaCapabilities.decodingInfo({ type: 'media-source', video });
    return codec + ': MediaSource ' + MediaSource.isTypeSupported(type(codec)) + ', MediaCapabilities ' + supported;
  };
  const levels = (rate) => new Promise((done) => {
    const hls = new Hls({ startLevel: 0 });
    hls.loadSource('/' + rate + '.m3u8');
    hls.attachMedia(v);
    v.play().catch(() => {});
    const look = () => {
      if (v.currentTime < 5) return setTimeout(look, 100);
      done('FRAME-RATE=' + rate + ': ' + hls.levels.length + ' variants are left');
      hls.destroy();
    };
    look();
  });
  (async () => {
    const all = [await capable('avc1.640009'), await capable('avc1.64000a'), await levels('30.000'), await levels('30.003')];
    fetch('/result', { method: 'POST', body: JSON.stringify(all) });
  })();
</script>`;
const EXPECTED = [
  'avc1.640009: MediaSource true, MediaCapabilities false',
  'avc1.64000a: MediaSource true, MediaCapabilities true',
  'FRAME-RATE=30.000: 2 variants are left',
  'FRAME-RATE=30.003: 1 variants are left',
];

const server = createServer(async (request, response) => {
  if (request.url === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
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
  const results = JSON.parse(text);
  for (const line of results) console.log(line);
  process.exitCode = JSON.stringify(results) === JSON.stringify(EXPECTED) ? 0 : 1;
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const url = `http://127.0.0.1:${server.address().port}/`;
const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--autoplay-policy=no-user-gesture-required', `--user-data-dir=${process.cwd()}/profile`];
const browser = execFile('chromium', [...flags, url], () => undefined);
const late = setTimeout(() => { console.error('the page has not answered'); browser.kill(); process.exit(1); }, 60_000);
END
node run.mjs
