/** Type of a socket option's value in libsrt (SRT API, "API-socket-options"). */
type Kind = 'int' | 'int64' | 'bool' | 'text';

export interface SrtOption {
  readonly name: string;
  /** Number in srt.h. */
  readonly id: number;
  readonly kind: Kind;
  readonly value: number | bigint | boolean | string;
}

interface Known {
  readonly id: number;
  readonly kind: Kind;
  /** Bounds of a number, or of the length of a text in bytes. */
  readonly min?: number;
  readonly max?: number;
  readonly oneOf?: readonly number[];
}

const MAX_INT = 0x7fff_ffff;

/** Options that can be set on a listener, and that its connections inherit. */
const OPTIONS: Readonly<Record<string, Known>> = {
  SRTO_MSS: { id: 0, kind: 'int', min: 76, max: 65_535 },
  SRTO_FC: { id: 4, kind: 'int', min: 32 },
  SRTO_SNDBUF: { id: 5, kind: 'int', min: 1 },
  SRTO_RCVBUF: { id: 6, kind: 'int', min: 1 },
  SRTO_UDP_SNDBUF: { id: 8, kind: 'int', min: 1 },
  SRTO_UDP_RCVBUF: { id: 9, kind: 'int', min: 1 },
  SRTO_REUSEADDR: { id: 15, kind: 'bool' },
  SRTO_MAXBW: { id: 16, kind: 'int64', min: -1 },
  SRTO_TSBPDMODE: { id: 22, kind: 'bool' },
  SRTO_LATENCY: { id: 23, kind: 'int' },
  SRTO_INPUTBW: { id: 24, kind: 'int64' },
  SRTO_OHEADBW: { id: 25, kind: 'int', min: 5, max: 100 },
  SRTO_PASSPHRASE: { id: 26, kind: 'text', min: 10, max: 79 },
  SRTO_PBKEYLEN: { id: 27, kind: 'int', oneOf: [0, 16, 24, 32] },
  SRTO_IPTTL: { id: 29, kind: 'int', min: 1, max: 255 },
  SRTO_IPTOS: { id: 30, kind: 'int', max: 255 },
  SRTO_TLPKTDROP: { id: 31, kind: 'bool' },
  SRTO_SNDDROPDELAY: { id: 32, kind: 'int', min: -1 },
  SRTO_NAKREPORT: { id: 33, kind: 'bool' },
  SRTO_CONNTIMEO: { id: 36, kind: 'int' },
  SRTO_DRIFTTRACER: { id: 37, kind: 'bool' },
  SRTO_MININPUTBW: { id: 38, kind: 'int64' },
  SRTO_LOSSMAXTTL: { id: 42, kind: 'int' },
  SRTO_RCVLATENCY: { id: 43, kind: 'int' },
  SRTO_PEERLATENCY: { id: 44, kind: 'int' },
  SRTO_MINVERSION: { id: 45, kind: 'int' },
  // at least one transport packet
  SRTO_PAYLOADSIZE: { id: 49, kind: 'int', min: 188, max: 1456 },
  SRTO_KMREFRESHRATE: { id: 51, kind: 'int' },
  SRTO_KMPREANNOUNCE: { id: 52, kind: 'int' },
  SRTO_ENFORCEDENCRYPTION: { id: 53, kind: 'bool' },
  SRTO_PEERIDLETIMEO: { id: 55, kind: 'int' },
  SRTO_BINDTODEVICE: { id: 56, kind: 'text', min: 1, max: 15 },
  SRTO_PACKETFILTER: { id: 60, kind: 'text', min: 1, max: 512 },
  SRTO_RETRANSMITALGO: { id: 61, kind: 'int', max: 1 },
};

/** Other options of libsrt, which the server or the caller decides. */
const NOT_SET_HERE: ReadonlySet<string> = new Set([
  'SRTO_SNDSYN',
  'SRTO_RCVSYN',
  'SRTO_ISN',
  'SRTO_LINGER',
  'SRTO_RENDEZVOUS',
  'SRTO_SNDTIMEO',
  'SRTO_RCVTIMEO',
  'SRTO_STATE',
  'SRTO_EVENT',
  'SRTO_SNDDATA',
  'SRTO_RCVDATA',
  'SRTO_SENDER',
  'SRTO_KMSTATE',
  'SRTO_VERSION',
  'SRTO_PEERVERSION',
  'SRTO_SNDKMSTATE',
  'SRTO_RCVKMSTATE',
  'SRTO_STREAMID',
  'SRTO_CONGESTION',
  'SRTO_MESSAGEAPI',
  'SRTO_TRANSTYPE',
  'SRTO_IPV6ONLY',
  'SRTO_GROUPCONNECT',
  'SRTO_GROUPMINSTABLETIMEO',
  'SRTO_GROUPTYPE',
  'SRTO_CRYPTOMODE',
]);

/** A fault of a socket option. Its message never contains the value, which may be a secret. */
export interface SrtOptionProblem {
  readonly at: 'key' | 'value';
  readonly message: string;
}

/** Reads a socket option from the configuration; returns its fault if it has one. */
export function readSrtOption(key: string, value: string): SrtOption | SrtOptionProblem {
  const known = Object.hasOwn(OPTIONS, key) ? OPTIONS[key] : undefined;
  if (known === undefined) {
    const message = NOT_SET_HERE.has(key)
      ? `"${key}" cannot be set here: the server or the caller decides it`
      : `"${key}" is not a socket option of SRT`;
    return { at: 'key', message };
  }
  const read = readValue(known, value.trim());
  if (read === undefined) return { at: 'value', message: `is not ${expectation(known)}, as ${key} requires` };
  return { name: key, id: known.id, kind: known.kind, value: read };
}

/** Options of a configuration whose options were checked before. */
export function srtOptions(options: readonly { readonly key: string; readonly value: string }[]): SrtOption[] {
  return options.flatMap(({ key, value }) => {
    const option = readSrtOption(key, value);
    return 'at' in option ? [] : [option];
  });
}

function readValue({ kind, min = 0, max = MAX_INT, oneOf }: Known, given: string): SrtOption['value'] | undefined {
  if (kind === 'bool') return { true: true, 1: true, false: false, 0: false }[given.toLowerCase()];
  if (kind === 'text') {
    const length = Buffer.byteLength(given);
    return length >= min && length <= max ? given : undefined;
  }
  if (!/^-?\d{1,18}$/.test(given)) return undefined;
  const number = Number(given);
  if (oneOf !== undefined) return oneOf.includes(number) ? number : undefined;
  if (number < min) return undefined;
  if (kind === 'int64') return BigInt(given);
  return number <= max ? number : undefined;
}

function expectation({ kind, min = 0, max = MAX_INT, oneOf }: Known): string {
  if (kind === 'bool') return 'true or false';
  if (kind === 'text') return `a text of ${min} to ${max} bytes`;
  if (oneOf !== undefined) return `one of ${oneOf.join(', ')}`;
  return max === MAX_INT || kind === 'int64' ? `an integer of at least ${min}` : `an integer (${min}..${max})`;
}
