import type { OverlayImage } from './encoding.ts';

/**
 * Chain of ffmpeg's filters that draws images on the output of another chain, the last one on top. Each image is decoded
 * once, in its known format, and kept.
 * @param chain filters of the video, at least one, that end in the size for which the images are placed
 * @param pads prefix of the names of pads, unique in the graph
 */
export function overlayFilters(chain: string, overlays: readonly OverlayImage[], pads: string): string {
  return overlays.reduce((below, { file, format, left, top, width, height, opacity }, index) => {
    const fade = opacity === 100 ? '' : `,colorchannelmixer=aa=${opacity / 100}`;
    const image = `movie=filename=${escaped(file)}:format_name=${format}_pipe,scale=${width}:${height},format=rgba${fade}`;
    const [base, drawn] = [`[${pads}picture${index}]`, `[${pads}image${index}]`];
    return `${below}${base};${image}${drawn};${base}${drawn}overlay=x=${left}:y=${top}`;
  }, chain);
}

/** Escapes a value, first for the filter's option, then for the graph. */
function escaped(value: string): string {
  return value.replace(/[\\':]/g, '\\$&').replace(/[\\'[\],;]/g, '\\$&');
}
