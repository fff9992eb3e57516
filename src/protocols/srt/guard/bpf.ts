/**
 * One instruction of classic BPF (Linux, "Linux Socket Filtering", and `struct sock_filter`). There is an accumulator and
 * an index register; jumps go forward only, over `ifTrue` or `ifFalse` instructions.
 */
export interface Instruction {
  readonly code: number;
  readonly k: number;
  /** At most 255, as is `ifFalse`. */
  readonly ifTrue?: number;
  readonly ifFalse?: number;
}

/** Limit of the kernel. */
export const MAX_INSTRUCTIONS = 4096;
export const INSTRUCTION_BYTES = 8;
const MAX_REACH = 255;
const WHOLE = 0xffff_ffff;

/** Loads the word at `at` of the packet into the accumulator. A packet that is too short for it is dropped. */
export const load = (at: number): Instruction => ({ code: 0x20, k: at });
export const loadHalf = (at: number): Instruction => ({ code: 0x28, k: at });
/** Loads the half word at `at` plus the index register. A packet that is too short for it is dropped. */
export const loadHalfBehindIndex = (at: number): Instruction => ({ code: 0x48, k: at });
/** Loads a word as `loadHalfBehindIndex` does a half word. */
export const loadBehindIndex = (at: number): Instruction => ({ code: 0x40, k: at });
export const loadLength = (): Instruction => ({ code: 0x80, k: 0 });
export const setIndex = (k: number): Instruction => ({ code: 0x01, k });
export const and = (k: number): Instruction => ({ code: 0x54, k });
export const add = (k: number): Instruction => ({ code: 0x04, k });
export const subtract = (k: number): Instruction => ({ code: 0x14, k });
export const shiftLeft = (k: number): Instruction => ({ code: 0x64, k });
export const addIndex = (): Instruction => ({ code: 0x0c, k: 0 });
export const subtractIndex = (): Instruction => ({ code: 0x1c, k: 0 });
export const toIndex = (): Instruction => ({ code: 0x07, k: 0 });
export const pass = (): Instruction => ({ code: 0x06, k: WHOLE });
export const drop = (): Instruction => ({ code: 0x06, k: 0 });
export const skip = (count: number): Instruction => ({ code: 0x05, k: count });

const JUMPS = { equal: 0x15, above: 0x25, atLeast: 0x35 } as const;

/** Does `then` when the accumulator compares so with `k`, and goes on after it otherwise. */
export function when(comparison: keyof typeof JUMPS, k: number, then: readonly Instruction[]): Instruction[] {
  const code = JUMPS[comparison];
  if (then.length <= MAX_REACH) return [{ code, k, ifTrue: 0, ifFalse: then.length }, ...then];
  return [{ code, k, ifTrue: 1, ifFalse: 0 }, skip(then.length), ...then];
}

/** Does `then` unless the accumulator compares so with `k`, and goes on after it otherwise. */
export function unless(comparison: keyof typeof JUMPS, k: number, then: readonly Instruction[]): Instruction[] {
  const code = JUMPS[comparison];
  if (then.length <= MAX_REACH) return [{ code, k, ifTrue: then.length, ifFalse: 0 }, ...then];
  return [{ code, k, ifTrue: 0, ifFalse: 1 }, skip(then.length), ...then];
}

/** Does `then`, no longer than a jump reaches, unless the accumulator is above the index register. */
export function unlessAboveIndex(then: readonly Instruction[]): Instruction[] {
  return [{ code: 0x2d, k: 0, ifTrue: then.length, ifFalse: 0 }, ...then];
}

/** Writes `struct sock_filter[]`. @throws RangeError for more than MAX_INSTRUCTIONS */
export function assemble(program: readonly Instruction[]): Buffer {
  if (program.length > MAX_INSTRUCTIONS) throw new RangeError(`${program.length} instructions`);
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES);
  program.forEach(({ code, k, ifTrue = 0, ifFalse = 0 }, index) => {
    const at = index * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(ifTrue, at + 2);
    bytes.writeUInt8(ifFalse, at + 3);
    bytes.writeUInt32LE(k >>> 0, at + 4);
  });
  return bytes;
}
