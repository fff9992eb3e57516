#!/usr/bin/env bash
# Media Source Extensions of Chromium begin at every H.264 recovery point, whatever the fMP4 says, and some of those end in an error.
#
# Expected: where a player begins is told by the container: a sample that is marked as no sync sample (sample_is_non_sync_sample of
# ISO/IEC 14496-12) is none that Chromium seeks to; and of an open GOP, either all begin, or none.
# What happens with Chromium 150 of Debian 12: an SEI recovery point makes a random access point of a picture that is marked as none.
# A seek into an IDR picture's GOP behind such a picture begins there. The pictures behind it that are shown before it are dropped; if
# one of them is a reference (B-pyramid, which x264 makes unless told), the next P picture removes it from the references, and the
# decoder gives up: PIPELINE_ERROR_DECODE, for good. Without B-pyramid (`b-pyramid=none`) the same seek plays, and so it does when the
# SEI messages are left out, because it begins at the IDR picture then. `buffered` and all appends look the same in all three cases.
# For users: joining a stream of open GOPs is a matter of the encoder's B-pyramid, and of where the player happens to begin.
#
# Needs root for apt-get where chromium or ffmpeg is missing, and node. Takes about half a minute. Exits non-zero if the behaviour is another.
set -euo pipefail

for program in chromium ffmpeg; do
  command -v "$program" > /dev/null || { apt-get -q update && apt-get -qy install "$program"; } > /dev/null
done
version=$(dpkg-query -W -f '${Version}' chromium)
echo "chromium $version, ffmpeg $(dpkg-query -W -f '${Version}' ffmpeg), node $(node --version)"
[[ $version == 150.* ]] || echo "this was written for version 150: the behaviour may be another"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# an IDR picture each 4 s, and a recovery point in the middle
for pyramid in none normal; do
  ffmpeg -v error -f lavfi -i testsrc2=r=25:s=320x180 -t 12 -pix_fmt yuv420p -c:v libx264 -preset veryfast -bf 3 -g 50 -keyint_min 50 \
    -sc_threshold 0 -x264-params "open-gop=1:b-adapt=0:b-pyramid=$pyramid" -forced-idr 1 -force_key_frames 'expr:gte(t,n_forced*4)' \
    -movflags frag_keyframe+empty_moov+default_base_moof "$folder/$pyramid.mp4"
done
ffmpeg -v error -i "$folder/normal.mp4" -c copy -bsf:v filter_units=remove_types=6 \
  -movflags frag_keyframe+empty_moov+default_base_moof "$folder/without-sei.mp4"

cat > "$folder/seek.mjs" << 'END'
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const [folder] = process.argv.slice(2);
const PAGE = `<video id="v" muted></video><script>
  const played = async (name, at) => {
    const source = new MediaSource();
    v.src = URL.createObjectURL(source);
    await new Promise((opened) => source.addEventListener('sourceopen', opened, { once: true }));
    const buffer = source.addSourceBuffer('video/mp4; codecs="avc1.64000d"');
    buffer.appendBuffer(await (await fetch('/' + name)).arrayBuffer());
    await new Promise((done) => buffer.addEventListener('updateend', done, { once: true }));
    const ranges = buffer.buffered.length;
    v.currentTime = buffer.buffered.start(0) + at;
    v.play().catch(() => {});
    for (let waited = 0; waited < 10 && v.error === null && v.getVideoPlaybackQuality().totalVideoFrames < 25; waited += 0.1)
      await new Promise((go) => setTimeout(go, 100));
    return { name, at, ranges, frames: v.getVideoPlaybackQuality().totalVideoFrames, error: v.error?.message ?? '' };
  };
  (async () => {
    const all = [];
    for (const name of ['normal', 'none', 'without-sei']) for (const at of [0.5, 2.5]) all.push(await played(name, at));
    fetch('/result', { method: 'POST', body: JSON.stringify(all) });
  })();
</script>`;

/** Fragments that begin with a recovery point, which is every second one, say that it is no sync sample. */
function unsynced(file) {
  const data = Buffer.from(file);
  let fragment = 0;
  for (let at = data.indexOf('trun'); at >= 0; at = data.indexOf('trun', at + 4)) {
    const flags = data.readUIntBE(at + 5, 3);
    if ((flags & 4) === 0) throw new Error('ffmpeg does not tell first_sample_flags');
    if (fragment++ % 2 === 1) data.writeUInt32BE(0x01010000, at + 12 + ((flags & 1) === 0 ? 0 : 4));
  }
  return data;
}

const server = createServer(async (request, response) => {
  if (request.url === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
  if (request.url !== '/result') {
    const file = await readFile(`${folder}${request.url}.mp4`).catch(() => undefined);
    if (file === undefined) return response.writeHead(404).end();
    return response.end(request.url === '/without-sei' ? file : unsynced(file));
  }
  let text = '';
  for await (const piece of request) text += piece;
  response.end();
  browser.kill();
  server.close();
  const results = JSON.parse(text);
  for (const { name, at, ranges, frames, error } of results)
    console.log(`${name}.mp4, seek to ${at} s: ${ranges} buffered range, ${frames} frames${error && `, ${error}`}`);
  const failed = results.filter(({ error }) => error.includes('PIPELINE_ERROR_DECODE')).map(({ name, at }) => `${name} ${at}`);
  const played = results.filter(({ frames }) => frames >= 25).length;
  process.exitCode = failed.join() === 'normal 2.5' && played === 5 ? 0 : 1;
  console.log(process.exitCode === 0 ? 'as written above' : 'the behaviour has changed');
});
let browser;
server.listen(0, '127.0.0.1', () => {
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--autoplay-policy=no-user-gesture-required'];
  const url = `http://127.0.0.1:${server.address().port}/`;
  browser = execFile('chromium', [...flags, `--user-data-dir=${folder}/profile`, '--remote-debugging-port=0', url]);
  setTimeout(() => {
    console.error('the browser does not answer');
    browser.kill();
    process.exit(2);
  }, 120_000).unref();
});
END
node "$folder/seek.mjs" "$folder"
