#!/usr/bin/env bash
# Content steering by PATHWAY-CLONES reaches hls.js alone of three web players, and there not with a port in HOST.
#
# Expected: a player that supports content steering (RFC 8216bis section 7) follows a steering manifest that makes a pathway of another one
# by PATHWAY-CLONES as it follows one that the multivariant playlist lists. All three have code for it.
# What happens in Chromium 150 of Debian 12 with a playlist of one video, and a manifest that puts the other host first:
# - pathway listed in the playlist: hls.js 1.7.4, video.js 8.24.1 and Shaka Player 5.2.12 load segments from the other host;
# - the same pathway as a clone, by HOST (with and without PARAMS) or PER-VARIANT-URIS: hls.js does. video.js and Shaka Player fetch the manifest,
#   and go on at the first host without an error;
# - HOST with a port, "host:8443": hls.js still loads from the first host, without an error: the port makes
#   the assignment to URL.hostname void. HOST is the host of a URL (RFC 3986 section 3.2.2), which has no port.
# For servers: nodes whose ports differ need PER-VARIANT-URIS and PER-RENDITION-URIS with stable ids. Pathways for all players have to be
# in the playlist.
#
# Needs root for apt-get where chromium or ffmpeg is missing, and node with npm. Takes about two minutes. Exits non-zero if the behaviour is
# another.
set -euo pipefail

for program in chromium ffmpeg; do
  command -v "$program" > /dev/null || { apt-get -q update && apt-get -qy install "$program"; } > /dev/null
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" hls.js@1.7.4 video.js@8.24.1 shaka-player@5.2.12
echo "hls.js 1.7.4, video.js 8.24.1, shaka-player 5.2.12, chromium $(dpkg-query -W -f '${Version}' chromium), node $(node --version)"

cd "$folder"
ffmpeg -v error -f lavfi -i testsrc2=r=10:s=160x90 -t 120 -pix_fmt yuv420p -c:v libx264 -preset ultrafast -bf 0 -g 20 -sc_threshold 0 \
  -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 -hls_fmp4_init_filename init.mp4 -hls_segment_filename 's%d.m4s' video.m3u8

cat > run.mjs << 'END'
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename } from 'node:path';

/** Two hosts with one port: the one that the page asks, and the one that the clone leads to. */
const [BASE, OTHER] = ['127.0.0.1', 'localhost'];
const SCRIPTS = { hls: 'hls.js/dist/hls.js', vhs: 'video.js/dist/video.js', shaka: 'shaka-player/dist/shaka-player.compiled.js' };
const START = {
  hls: `const hls = new Hls(); hls.loadSource(url); hls.attachMedia(v);`,
  vhs: `videojs(v, { html5: { vhs: { overrideNative: true } } }).src({ src: url, type: 'application/x-mpegURL' });`,
  shaka: `shaka.polyfill.installAll(); const p = new shaka.Player(); p.attach(v).then(() => p.load(url));`,
};
const page = (player, url) =>
  `<video id="v" muted autoplay></video><script src="/${SCRIPTS[player]}"></script><script>const url = '${url}'; ${START[player]}</script>`;

const REPLACEMENTS = {
  listed: undefined,
  HOST: () => ({ HOST: OTHER }),
  'HOST, PARAMS': () => ({ HOST: OTHER, PARAMS: {} }),
  'HOST:port': (port) => ({ HOST: `${OTHER}:${port}`, PARAMS: {} }),
  'PER-VARIANT-URIS': (port, id) => ({ 'PER-VARIANT-URIS': { v: `http://${OTHER}:${port}/${id}/video.m3u8` } }),
};
const cases = [];
for (const player of Object.keys(SCRIPTS))
  for (const way of Object.keys(REPLACEMENTS)) cases.push({ player, way, hosts: new Set() });

const variant = (pathway, host, id, port) =>
  `#EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="avc1.42c00b",RESOLUTION=160x90,STABLE-VARIANT-ID="v",PATHWAY-ID="${pathway}"\n` +
  `http://${host}:${port}/${id}/video.m3u8\n`;
const master = ({ way }, id, port) =>
  `#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-CONTENT-STEERING:SERVER-URI="steering.json",PATHWAY-ID="one"\n` +
  variant('one', BASE, id, port) + (way === 'listed' ? variant('two', OTHER, id, port) : '');
const steering = ({ way }, id, port) => {
  const replacement = REPLACEMENTS[way]?.(port, id);
  const clones = replacement && { 'PATHWAY-CLONES': [{ 'BASE-ID': 'one', ID: 'two', 'URI-REPLACEMENT': replacement }] };
  return JSON.stringify({ VERSION: 1, TTL: 300, 'PATHWAY-PRIORITY': ['two', 'one'], ...clones });
};

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  const { port } = server.address();
  response.setHeader('access-control-allow-origin', '*');
  const [, first, name] = pathname.split('/');
  const one = cases[first];
  if (one === undefined) return response.end(await readFile(`node_modules${pathname}`).catch(() => ''));
  if (name === 'page') return response.setHeader('content-type', 'text/html').end(page(one.player, `http://${BASE}:${port}/${first}/master.m3u8`));
  if (name === 'master.m3u8') return response.end(master(one, first, port));
  if (name === 'steering.json') {
    one.steered = true;
    return response.end(steering(one, first, port));
  }
  if (name.endsWith('.m4s')) one.hosts.add(request.headers.host.split(':')[0]);
  response.end(await readFile(basename(name)).catch(() => ''));
});
await new Promise((listening) => server.listen(0, listening));
const { port } = server.address();
for (const [id, one] of cases.entries()) {
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--autoplay-policy=no-user-gesture-required', `--user-data-dir=${process.cwd()}/profile${id}`];
  const browser = execFile('chromium', [...flags, `http://${BASE}:${port}/${id}/page`], () => undefined);
  for (let tries = 0; tries < 100 && !one.hosts.has(OTHER); tries++) {
    await new Promise((done) => setTimeout(done, 100));
    if (one.hosts.size > 0 && (one.since ??= Date.now()) < Date.now() - 8000) break;
  }
  browser.kill();
  console.log(`${one.player}, ${one.way}: ${one.steered ? 'asked for the manifest' : 'did not ask'}, segments from ${[...one.hosts].join(' and ')}`);
}
server.close();
server.closeAllConnections();
const follows = { listed: ['hls', 'vhs', 'shaka'], HOST: ['hls'], 'HOST, PARAMS': ['hls'], 'HOST:port': [], 'PER-VARIANT-URIS': ['hls'] };
const isKnown = cases.every(({ player, way, steered, hosts }) => steered && hosts.has(OTHER) === follows[way].includes(player));
console.log(isKnown ? 'as described' : 'the behaviour has changed');
process.exitCode = isKnown ? 0 : 1;
END
node run.mjs
