import {
  add,
  addIndex,
  and,
  drop,
  load,
  loadBehindIndex,
  loadHalf,
  loadHalfBehindIndex,
  loadLength,
  pass,
  setIndex,
  shiftLeft,
  skip,
  subtract,
  subtractIndex,
  toIndex,
  unless,
  unlessAboveIndex,
  when,
  type Instruction,
} from './bpf.ts';

/** What a peer may acknowledge, or ask for again, of what it was sent. */
export interface Window {
  /** Number of the socket here, which the peer addresses. */
  readonly socket: number;
  /** The first sequence number, of 31 bits. */
  readonly first: number;
}

/** Sequence numbers that a window has: what a connection may send until its window is moved, and what may be on its way. */
export const WINDOW_NUMBERS = 2 ** 18;

/** A packet lies behind the header of UDP, which a filter sees as well. Fields of draft-sharabayko-srt-01 section 3. */
const UDP_HEAD = 8;
const SRT_HEAD = 16;
const SOCKET_AT = UDP_HEAD + 12;
const BODY = UDP_HEAD + SRT_HEAD;
const FIRST_CONTROL = 0x8000;
const CONTROL = {
  handshake: 0x8000,
  keepAlive: 0x8001,
  ack: 0x8002,
  nak: 0x8003,
  shutdown: 0x8005,
  ackAck: 0x8006,
  dropRequest: 0x8007,
  extension: 0xffff,
} as const;
const PASSING = [CONTROL.keepAlive, CONTROL.shutdown, CONTROL.ackAck];
const SUBTYPE_AT = UDP_HEAD + 2;
/** Types of extensions, of a handshake and of control packets, that bring keys, or tell that they came. */
const KEYS = { first: 3, last: 4 } as const;
/** Words of keys: a salt, two keys of 256 bits and what they are wrapped in. libsrt has room for no more. */
const MAX_KEY_WORDS = 26;
const HANDSHAKE = {
  sequence: BODY + 8,
  packetBytes: BODY + 12,
  window: BODY + 16,
  type: BODY + 20,
  lastWord: BODY + 44,
  extensions: BODY + 48,
} as const;
/** There are as many types of them. */
const MAX_EXTENSIONS = 8;
const INDUCTION = 1;
const CONCLUSION = 0xffff_ffff;
const ACK = { sequence: BODY, rtt: BODY + 4, rttVariance: BODY + 8, minBytes: 16, maxBytes: 32 } as const;
const DROP_REQUEST = { first: BODY, last: BODY + 4 } as const;

const MAX_SEQUENCE = 0x7fff_ffff;
/** Of a whole IP packet. libsrt makes its buffers for so much, and writes answers of up to 700 bytes there all the same. */
const MIN_PACKET_BYTES = 1000;
const MAX_PACKET_BYTES = 65_535;
/** Packets. libsrt makes a list of twice so many entries for each caller. */
const MIN_WINDOW = 32;
const MAX_WINDOW = 2 ** 17;
/** Microseconds. A peer is given up after some seventeen times the round trip and four times its variance. */
const MAX_RTT = 2_000_000;
const MAX_RTT_VARIANCE = 1_000_000;
/** Packets that one request may drop: libsrt goes through them one by one. */
const MAX_DROPPED = 2 ** 15;

/**
 * What is let through to libsrt, which believes what it must not: it goes through up to 2^31 numbers, with what others wait
 * for held, when a peer acknowledges what was never sent or drops what never was, and makes lists as long as a caller wants.
 * Before 1.5.6 it also has room for the longest keys only, and reads on behind a report of losses that ends in the middle.
 * @param windows of connections that were sent something: nobody else has anything to acknowledge. undefined: anybody may
 */
export function rules(windows: readonly Window[] | undefined): Instruction[] {
  const rest = windows === undefined ? [pass()] : [load(SOCKET_AT), ...find(windows)];
  return [
    // a packet without a whole header goes
    load(SOCKET_AT),
    loadHalf(UDP_HEAD),
    ...unless('atLeast', FIRST_CONTROL, [pass()]),
    ...PASSING.flatMap((type) => when('equal', type, [pass()])),
    ...when('equal', CONTROL.extension, extension()),
    ...when('equal', CONTROL.handshake, handshake()),
    ...when('equal', CONTROL.dropRequest, dropRequest()),
    ...when('above', CONTROL.nak, [drop()]),
    ...when('equal', CONTROL.nak, losses()),
    ...acknowledgement(),
    ...rest,
  ];
}

function handshake(): Instruction[] {
  return [
    load(HANDSHAKE.lastWord),
    load(HANDSHAKE.type),
    ...when('equal', INDUCTION, [pass()]),
    ...unless('equal', CONCLUSION, [drop()]),
    load(HANDSHAKE.sequence),
    ...when('above', MAX_SEQUENCE, [drop()]),
    load(HANDSHAKE.packetBytes),
    ...unless('atLeast', MIN_PACKET_BYTES, [drop()]),
    ...when('above', MAX_PACKET_BYTES, [drop()]),
    load(HANDSHAKE.window),
    ...unless('atLeast', MIN_WINDOW, [drop()]),
    ...when('above', MAX_WINDOW, [drop()]),
    setIndex(HANDSHAKE.extensions),
    ...Array.from({ length: MAX_EXTENSIONS }, handshakeExtension).flat(),
    ...passAtEnd(),
    drop(),
  ];
}

/** Moves the index register from an extension to the next one. */
function handshakeExtension(): Instruction[] {
  return [
    ...passAtEnd(),
    loadHalfBehindIndex(0),
    ...ofKeys([loadHalfBehindIndex(2), subtract(1), ...when('above', MAX_KEY_WORDS - 1, [drop()])]),
    loadHalfBehindIndex(2),
    shiftLeft(2),
    add(4),
    addIndex(),
    toIndex(),
  ];
}

/** Passes what has nothing behind the index register. */
function passAtEnd(): Instruction[] {
  return [loadLength(), ...unlessAboveIndex([pass()])];
}

/** What comes by itself of what extends a handshake. */
function extension(): Instruction[] {
  const keys = [...wholeWords(), loadLength(), subtract(BODY + 4), ...when('above', 4 * (MAX_KEY_WORDS - 1), [drop()])];
  return [loadHalf(SUBTYPE_AT), ...ofKeys(keys), pass()];
}

/** Does `then` where the type of an extension in the accumulator is one of KEYS. What is below it is far above. */
function ofKeys(then: readonly Instruction[]): Instruction[] {
  return [subtract(KEYS.first), ...unless('above', KEYS.last - KEYS.first, then)];
}

/** Goes on with a report of losses that is whole: a word with the highest bit begins a range, which another one ends. */
function losses(): Instruction[] {
  return [
    ...wholeWords(),
    loadLength(),
    subtract(4),
    toIndex(),
    loadBehindIndex(0),
    ...when('above', MAX_SEQUENCE, [drop()]),
    loadHalf(UDP_HEAD),
  ];
}

function wholeWords(): Instruction[] {
  return [loadLength(), and(3), ...unless('equal', 0, [drop()])];
}

function dropRequest(): Instruction[] {
  return [
    load(DROP_REQUEST.first),
    ...when('above', MAX_SEQUENCE, [drop()]),
    toIndex(),
    load(DROP_REQUEST.last),
    ...when('above', MAX_SEQUENCE, [drop()]),
    subtractIndex(),
    and(MAX_SEQUENCE),
    ...when('above', MAX_DROPPED, [drop()]),
    pass(),
  ];
}

/** Goes on with what is no acknowledgement, and with a sane one. One of four bytes alone, which libsrt looks at the least, does without. */
function acknowledgement(): Instruction[] {
  return when('equal', CONTROL.ack, [
    loadLength(),
    ...unless('atLeast', BODY + ACK.minBytes, [drop()]),
    ...when('above', BODY + ACK.maxBytes, [drop()]),
    load(ACK.sequence),
    ...when('above', MAX_SEQUENCE, [drop()]),
    load(ACK.rtt),
    ...when('above', MAX_RTT, [drop()]),
    load(ACK.rttVariance),
    ...when('above', MAX_RTT_VARIANCE, [drop()]),
  ]);
}

/**
 * Lets nothing through: behind a packet that is for nobody libsrt does not look at its timers, and so never gets to the
 * end of connections that are closed while such packets keep coming.
 */
export function nothing(): Instruction[] {
  return [drop()];
}

/** With the number of a socket in the accumulator. */
function find(windows: readonly Window[]): Instruction[] {
  const search = branch(windows.toSorted((a, b) => a.socket - b.socket));
  return [
    ...search.map((step, index) => (step === FOUND ? skip(search.length - index - 1) : step)),
    load(BODY),
    and(MAX_SEQUENCE),
    subtractIndex(),
    and(MAX_SEQUENCE),
    ...when('atLeast', WINDOW_NUMBERS, [drop()]),
    pass(),
  ];
}

/** Stands for the jump behind the search, where the index register has the first number of the window. */
const FOUND: Instruction = skip(0);

/** So many windows are looked at one by one: to divide them further would make a program longer than the kernel takes. */
const UNDIVIDED = 8;

/** A binary search. */
function branch(windows: readonly Window[]): Instruction[] {
  if (windows.length <= UNDIVIDED) return [...windows.flatMap(found), drop()];
  const middle = windows.length >> 1;
  const { socket } = windows[middle] as Window;
  return [...unless('atLeast', socket, branch(windows.slice(0, middle))), ...branch(windows.slice(middle))];
}

function found({ first, socket }: Window): Instruction[] {
  return [setIndex(first), ...when('equal', socket, [FOUND])];
}
