import type { SrtOption } from '../../lib/srt-options.ts';

/** The value of a socket option as `srt_setsockflag` takes it. */
export function optionBytes({ kind, value }: Pick<SrtOption, 'kind' | 'value'>): Buffer {
  if (kind === 'text') return Buffer.from(String(value));
  const bytes = Buffer.alloc(kind === 'int64' ? 8 : 4);
  if (kind === 'int64') bytes.writeBigInt64LE(BigInt(value));
  else bytes.writeInt32LE(Number(value));
  return bytes;
}
