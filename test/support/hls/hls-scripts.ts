import { readFileSync } from 'node:fs';

/** Source of hls.js with `hls-player.js` behind it, for pages: `watchHls(hls)` collects in `faults` what went wrong. */
export function hlsScripts(): string {
  const paths = ['../../../node_modules/hls.js/dist/hls.min.js', 'hls-player.js'];
  return paths.map((path) => readFileSync(new URL(path, import.meta.url), 'utf8')).join('\n;');
}
