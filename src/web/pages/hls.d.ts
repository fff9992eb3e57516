// The package under the name that the server gives it.
export { default, type FragBufferedData, type HlsIFramesOnly, type Level } from 'hls.js';
