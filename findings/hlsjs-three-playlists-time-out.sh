#!/usr/bin/env bash
# hls.js ends playback when the playlists of video, audio and subtitles are silent together for 10 seconds, but not those of two of them.
#
# Expected: a live stream with CAN-BLOCK-RELOAD=YES whose encoder pauses for a while plays on afterwards. A server may hold a request for
# the next state of a playlist for three target durations (RFC 8216bis 6.2.5.2), and hls.js retries one that times out twice, at once.
# What happens with hls.js 1.7.4 in Chromium 150 of Debian 12: it gives up an answer that has not begun after 10 s, and counts what fails
# of all playlists together, until one of the video was loaded. With video and audio both requests time out, are made again without
# _HLS_msn, and playback survives a pause of any length. With subtitles that are shown the three time out at the same moment: the third
# one has no retry left, so `audioTrackLoadTimeOut` or the like is fatal. Errors, such as 503, are counted in the same way.
# For servers: do not let the requests for all renditions fail at the same time. For pages: call hls.startLoad() after a fatal network
# error, or allow more with playlistLoadPolicy.default.timeoutRetry.maxNumRetry and errorRetry.maxNumRetry.
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
fmp4=(-t 20 -hls_time 4 -hls_list_size 0 -hls_segment_type fmp4)
ffmpeg -v error -f lavfi -i testsrc2=r=10:s=160x90 -pix_fmt yuv420p -c:v libx264 -preset ultrafast -bf 0 -g 40 -sc_threshold 0 "${fmp4[@]}" \
  -hls_fmp4_init_filename video.mp4 video.m3u8
ffmpeg -v error -f lavfi -i sine=sample_rate=48000 -c:a aac "${fmp4[@]}" -hls_fmp4_init_filename audio.mp4 audio.m3u8
printf 'WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n' > subtitles.vtt

cat > run.mjs << 'END'
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename } from 'node:path';

const PAGE = `<video id="v" muted></video><script src="/node_modules/hls.js/dist/hls.js"></script><script>
  /** What was fatal in 35 seconds, and when. */
  const faultOf = (master) => new Promise((done) => {
    const hls = new Hls();
    const begun = performance.now();
    const end = (details) => {
      hls.destroy();
      done({ details, seconds: Math.round((performance.now() - begun) / 1000) });
    };
    const late = setTimeout(end, 35_000, 'none');
    hls.on('hlsError', (_event, { fatal, details }) => {
      if (!fatal) return;
      clearTimeout(late);
      end(details);
    });
    hls.loadSource(master);
    hls.attachMedia(v);
  });
  (async () => {
    const body = JSON.stringify([await faultOf('/three.m3u8'), await faultOf('/two.m3u8')]);
    fetch('/result', { method: 'POST', body });
  })();
</script>`;

const AUDIO = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Audio",DEFAULT=YES,AUTOSELECT=YES,URI="audio.m3u8"\n';
const SUBTITLES = '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",DEFAULT=YES,AUTOSELECT=YES,LANGUAGE="en",URI="subtitles.m3u8"\n';
const master = (media, more) =>
  `#EXTM3U\n#EXT-X-VERSION:6\n${media}#EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="avc1.42c00b,mp4a.40.2",AUDIO="a"${more}\nvideo.m3u8\n`;
const MASTERS = { '/three.m3u8': master(AUDIO + SUBTITLES, ',SUBTITLES="s"'), '/two.m3u8': master(AUDIO, '') };
/** Live, of a stream that has paused. */
const live = (text) =>
  text
    .replace('#EXT-X-ENDLIST', '')
    .replace(/#EXT-X-TARGETDURATION.*\n/, '$&#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n');
const listOf = async (name) => {
  if (name !== 'subtitles.m3u8') return live(await readFile(name, 'utf8'));
  return live((await readFile('video.m3u8', 'utf8')).replace(/#EXT-X-MAP.*\n/, '').replace(/^video.*$/gm, 'subtitles.vtt'));
};

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  // there is no next state
  if (searchParams.has('_HLS_msn')) return;
  if (pathname === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
  if (MASTERS[pathname] !== undefined) return response.end(MASTERS[pathname]);
  if (pathname !== '/result') {
    const name = pathname.endsWith('/hls.js') ? 'node_modules/hls.js/dist/hls.js' : basename(pathname);
    const body = await (name.endsWith('.m3u8') ? listOf(name) : readFile(name)).catch(() => undefined);
    // as on a way of some length: what is asked for again has not come when the next request times out
    if (name.endsWith('.m3u8')) await new Promise((done) => setTimeout(done, 500));
    return body === undefined ? response.writeHead(404).end() : response.end(body);
  }
  let text = '';
  for await (const piece of request) text += piece;
  response.end();
  browser.kill();
  server.close();
  server.closeAllConnections();
  clearTimeout(late);
  const [three, two] = JSON.parse(text);
  console.log(`video, audio and subtitles: fatal: ${three.details}, after ${three.seconds} s`);
  console.log(`video and audio: fatal: ${two.details}, within ${two.seconds} s`);
  const isKnown = /LoadTimeOut$/.test(three.details) && three.seconds < 20 && two.details === 'none';
  console.log(isKnown ? 'as described' : 'the behaviour has changed');
  process.exitCode = isKnown ? 0 : 1;
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const url = `http://127.0.0.1:${server.address().port}/`;
const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--autoplay-policy=no-user-gesture-required', `--user-data-dir=${process.cwd()}/profile`];
const browser = execFile('chromium', [...flags, url], () => undefined);
const late = setTimeout(() => { console.error('the page has not answered'); browser.kill(); process.exit(1); }, 180_000);
END
node run.mjs
