#!/usr/bin/env bash
# WebKitGTK turns the sound of a muted video on when a script changes the playback rate, and then pauses the video.
#
# Expected (HTML, "the playback rate" of media elements): `video.playbackRate = 1.05` changes the rate and nothing else; a video that began
# to play by itself because it is muted plays on, muted.
# What happens with WebKitGTK 2.50 of Debian 12: `muted` becomes false at the change, and as a video with sound that nobody asked for
# may not play by itself, it is paused at once. The page hears `volumechange`, `pause` and, last of all, `ratechange`. In some runs it
# plays on by itself, with sound; in others nothing goes on unless the page mutes the video again and plays it. Players that catch up
# with a live stream by the rate, as hls.js does with `maxLiveSyncPlaybackRate`, meet that a moment after they began.
#
# Needs root for apt-get where a package is missing, and node. Takes half a minute. Exits non-zero if the behaviour is another.
set -euo pipefail

packages=(xvfb dbus ffmpeg webkit2gtk-driver gstreamer1.0-libav gstreamer1.0-plugins-good)
dpkg-query -W "${packages[@]}" > /dev/null 2>&1 || { apt-get -q update && apt-get -qy install "${packages[@]}"; } > /dev/null
version=$(dpkg-query -W -f '${Version}' webkit2gtk-driver)
echo "webkit2gtk-driver $version, node $(node --version)"
[[ $version == 2.50.* ]] || echo "this was written for version 2.50: the behaviour may be another"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ffmpeg -v error -f lavfi -i testsrc2=s=320x180:r=25 -f lavfi -i sine=440:r=48000 -t 30 -c:v libx264 -preset ultrafast -pix_fmt yuv420p \
  -g 50 -c:a aac -movflags +faststart "$folder/video.mp4"

cat > "$folder/drive.mjs" << 'END'
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const [folder] = process.argv.slice(2);
const video = readFileSync(`${folder}/video.mp4`);
const PAGE = `<video id="v" muted autoplay playsinline src="/video.mp4"></video><script>
  const told = [];
  for (const type of ['volumechange', 'pause', 'ratechange']) v.addEventListener(type, () => told.push(type));
  const state = () => ({ at: v.currentTime, muted: v.muted, paused: v.paused, rate: v.playbackRate });
  let before, after, again;
  const wait = setInterval(() => {
    if (v.currentTime < 2) return;
    clearInterval(wait);
    before = state();
    v.playbackRate = 1.05;
    setTimeout(() => {
      after = { ...state(), told: [...told] };
      v.muted = true;
      v.play();
      setTimeout(() => (again = state()), 2000);
    }, 3000);
  }, 100);
</script>`;
const server = createServer(({ url, headers }, response) => {
  if (url === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
  if (url !== '/video.mp4') return response.writeHead(404).end();
  const [, from = 0, to] = /bytes=(\d+)-(\d*)/.exec(headers.range ?? '') ?? [];
  const last = to ? Number(to) : video.length - 1;
  const range = { 'content-range': `bytes ${from}-${last}/${video.length}`, 'accept-ranges': 'bytes' };
  response.writeHead(headers.range ? 206 : 200, {
    'content-type': 'video/mp4',
    'content-length': last + 1 - Number(from),
    ...(headers.range && range),
  });
  response.end(video.subarray(Number(from), last + 1));
});
const listen = (one) => new Promise((resolve) => one.listen(0, '127.0.0.1', () => resolve(one.address().port)));
const page = `http://127.0.0.1:${await listen(server)}/`;
// a port that is free now is for the driver
const probe = createServer();
const port = await listen(probe);
await new Promise((resolve) => probe.close(resolve));
const driver = spawn('WebKitWebDriver', [`--port=${port}`, '--host=127.0.0.1'], { stdio: 'ignore' });
const call = async (method, path, body) => {
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
      const { value } = await answer.json();
      if (!answer.ok) throw Object.assign(new Error(JSON.stringify(value)), { final: true });
      return value;
    } catch (error) {
      if (error.final || attempt > 20) throw error;
      await delay(250);
    }
  }
};
const options = { binary: '/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser', args: ['--automation'] };
const { sessionId } = await call('POST', '/session', {
  capabilities: { alwaysMatch: { browserName: 'MiniBrowser', 'webkitgtk:browserOptions': options } },
});
const run = (script) => call('POST', `/session/${sessionId}/execute/sync`, { script, args: [] });
await call('POST', `/session/${sessionId}/url`, { url: page });
let seen = {};
for (let tries = 0; seen.again == null; tries++) {
  if (tries > 60) throw new Error('the video does not play');
  await delay(500);
  seen = await run('return { before, after, again }');
}
const { before, after, again } = seen;
console.log('before the change', JSON.stringify(before));
console.log('3 s after it     ', JSON.stringify(after));
console.log('muted and played ', JSON.stringify(again));
await call('DELETE', `/session/${sessionId}`);
driver.kill();
server.close();
const isAsTold = after.told.slice(0, 3).join() === 'volumechange,pause,ratechange';
const isKnown = before.muted && !before.paused && !after.muted && isAsTold && again.muted && !again.paused;
console.log(isKnown ? 'as described' : 'the behaviour has changed');
process.exit(isKnown ? 0 : 1);
END

# a sandbox and a compositor are not to be had everywhere, and have no part in it
export WEBKIT_DISABLE_COMPOSITING_MODE=1 WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS=1
timeout 120 xvfb-run -a dbus-run-session -- node "$folder/drive.mjs" "$folder" 2> "$folder/errors" || {
  status=$?
  tail -n 5 "$folder/errors" >&2
  exit "$status"
}
