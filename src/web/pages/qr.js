/** Bytes of version 20 at level M (ISO/IEC 18004 table 7): enough for an address with a signed policy, and still easy to read. */
const MAX_BYTES = 666;

/**
 * A QR code of a text as UTF-8, in byte mode with error correction level M.
 * @param {typeof import('./qrcode-generator.js').default} generator
 * @param {string} text
 * @returns rows of modules, true for dark ones, without the quiet zone; undefined for a text that is too long
 */
export function qrCode(generator, text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > MAX_BYTES) return undefined;
  const code = generator(0, 'M');
  // the package takes a character for a byte
  code.addData(String.fromCharCode(...bytes), 'Byte');
  code.make();
  const line = Array.from({ length: code.getModuleCount() }, (_, at) => at);
  return line.map((y) => line.map((x) => code.isDark(y, x)));
}
