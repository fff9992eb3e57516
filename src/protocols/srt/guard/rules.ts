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

/** Sequence numbers that a peer may acknowledge or report as lost. */
export interface Window {
  /** Number of the socket on this side, to which the peer's packets are addressed. */
  readonly socket: number;
  /** First sequence number, of 31 bits. */
  readonly first: number;
}

/** Sequence numbers in a window: those sent before it is moved again, and those on their way. */
export const WINDOW_NUMBERS = 2 ** 18;

/** The filter sees the UDP header too. Fields of draft-sharabayko-srt-01 section 3. */
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
/** Types of handshake extensions and control packets that carry keys or confirm them. */
const KEYS = { first: 3, last: 4 } as const;
/** Words of keys: a salt and two wrapped keys of 256 bits. libsrt has room for no more. */
const MAX_KEY_WORDS = 26;
const HANDSHAKE = {
  sequence: BODY + 8,
  packetBytes: BODY + 12,
  window: BODY + 16,
  type: BODY + 20,
  lastWord: BODY + 44,
  extensions: BODY + 48,
} as const;
/** Number of extension types that exist. */
const MAX_EXTENSIONS = 8;
const INDUCTION = 1;
const CONCLUSION = 0xffff_ffff;
const ACK = { sequence: BODY, rtt: BODY + 4, rttVariance: BODY + 8, minBytes: 16, maxBytes: 32 } as const;
const DROP_REQUEST = { first: BODY, last: BODY + 4 } as const;

const MAX_SEQUENCE = 0x7fff_ffff;
/** Bytes of a whole IP packet. libsrt sizes its buffers by it, but writes answers of up to 700 bytes into them in any case. */
const MIN_PACKET_BYTES = 1000;
const MAX_PACKET_BYTES = 65_535;
/** Packets. libsrt allocates a list of twice as many entries for each caller. */
const MIN_WINDOW = 32;
const MAX_WINDOW = 2 ** 17;
/** Microseconds. libsrt times a peer out after some seventeen times the round trip and four times its variance. */
const MAX_RTT = 2_000_000;
const MAX_RTT_VARIANCE = 1_000_000;
/** Packets that one request may drop: libsrt visits each one. */
const MAX_DROPPED = 2 ** 15;

/**
 * Rules for packets that may reach libsrt, which trusts its input too much. When a peer acknowledges packets that were never
 * sent, or drops ones that never existed, libsrt visits up to 2^31 numbers while it holds locks that others wait for; it
 * allocates lists as long as a caller wants. Before 1.5.6 it also has room for the longest keys only, and reads past the end
 * of a truncated loss report.
 * @param windows of connections that were sent something: no other peer may acknowledge anything. undefined: any may
 */
export function rules(windows: readonly Window[] | undefined): Instruction[] {
  const rest = windows === undefined ? [pass()] : [load(SOCKET_AT), ...find(windows)];
  return [
    // a packet without a whole header is dropped
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

/** Passes a packet that ends at the index register. */
function passAtEnd(): Instruction[] {
  return [loadLength(), ...unlessAboveIndex([pass()])];
}

/** Rules for a handshake extension that comes as a packet of its own. */
function extension(): Instruction[] {
  const keys = [...wholeWords(), loadLength(), subtract(BODY + 4), ...when('above', 4 * (MAX_KEY_WORDS - 1), [drop()])];
  return [loadHalf(SUBTYPE_AT), ...ofKeys(keys), pass()];
}

/** Does `then` when the extension type in the accumulator is one of KEYS. Lower types wrap around to large numbers. */
function ofKeys(then: readonly Instruction[]): Instruction[] {
  return [subtract(KEYS.first), ...unless('above', KEYS.last - KEYS.first, then)];
}

/** Goes on with a complete loss report: a word with its highest bit set begins a range, which the next word ends. */
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

/** Goes on with packets of other types, and with plausible acknowledgements; drops the form of four bytes, which libsrt validates the least. */
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
 * Rules that drop everything. After packets for no connection libsrt does not look at its timers: closed connections would
 * never end while such packets keep coming.
 */
export function nothing(): Instruction[] {
  return [drop()];
}

/** Expects a socket number in the accumulator. */
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

/** Placeholder for the jump past the search, after which the index register has the first number of the window. */
const FOUND: Instruction = skip(0);

/** Windows that are compared one by one: more levels of search would make the program longer than the kernel accepts. */
const UNDIVIDED = 8;

function branch(windows: readonly Window[]): Instruction[] {
  if (windows.length <= UNDIVIDED) return [...windows.flatMap(found), drop()];
  const middle = windows.length >> 1;
  const { socket } = windows[middle] as Window;
  return [...unless('atLeast', socket, branch(windows.slice(0, middle))), ...branch(windows.slice(middle))];
}

function found({ first, socket }: Window): Instruction[] {
  return [setIndex(first), ...when('equal', socket, [FOUND])];
}
