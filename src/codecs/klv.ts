/** How every universal label begins (SMPTE 336M; SMPTE 298M). */
const LABEL = 0x060e2b34;
const KEY_BYTES = 16;
const LONG_FORM = 0x80;
/** More than any packet could have. */
const MAX_LENGTH_BYTES = 4;

/** Whether data are whole items of KLV with universal labels, one or more: key, length in BER and value (SMPTE 336M). */
export function isKlv(data: Buffer): boolean {
  let at = 0;
  while (at < data.length) {
    const end = endOf(data, at);
    if (end === undefined || end > data.length) return false;
    at = end;
  }
  return at > 0;
}

/** End of the item that begins there; undefined where it has no key or no length. */
function endOf(data: Buffer, at: number): number | undefined {
  const start = at + KEY_BYTES;
  const first = data[start];
  if (first === undefined || data.readUInt32BE(at) !== LABEL) return undefined;
  if (first < LONG_FORM) return start + 1 + first;
  const bytes = first - LONG_FORM;
  if (bytes === 0 || bytes > MAX_LENGTH_BYTES || start + 1 + bytes > data.length) return undefined;
  return start + 1 + bytes + data.readUIntBE(start + 1, bytes);
}
