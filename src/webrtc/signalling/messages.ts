/** Fault of a client of the WebSocket signalling; the texts are the protocol's (docs/compatibility.md#webrtc-signalling). */
export class SignallingError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = 'SignallingError';
    this.code = code;
  }
}

export type ClientMessage =
  | { readonly command: 'request_offer' }
  | { readonly command: 'answer'; readonly id: unknown; readonly sdp: string }
  | { readonly command: 'candidate'; readonly id: unknown }
  | { readonly command: 'change_rendition'; readonly id: unknown; readonly name?: string; readonly auto?: boolean }
  | { readonly command: 'stop'; readonly id: unknown };

type Fields = Readonly<Record<string, unknown>>;

const MAX_ECHO = 64;
const MAX_CANDIDATES = 64;

/** Reads one text frame. @throws SignallingError */
export function parseMessage(text: string): ClientMessage {
  const fields = parseObject(text);
  const { command, id } = fields;
  switch (command) {
    case 'request_offer':
      return { command };
    case 'answer':
      return { command, id, sdp: parseAnswer(fields.sdp) };
    case 'candidate':
      checkCandidates(fields.candidates);
      return { command, id };
    case 'change_rendition': {
      const { rendition_name: name, auto } = fields;
      return {
        command,
        id,
        ...(typeof name === 'string' ? { name } : {}),
        ...(typeof auto === 'boolean' ? { auto } : {}),
      };
    }
    case 'stop':
      return { command, id };
    default:
      throw new SignallingError(400, `Unknown command: ${echo(command)}`);
  }
}

function parseObject(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SignallingError(400, 'Invalid message');
  }
  return value as Fields;
}

function parseAnswer(sdp: unknown): string {
  if (typeof sdp !== 'object' || sdp === null) throw new SignallingError(400, 'There is no SDP');
  const { type, sdp: body } = sdp as Fields;
  if (type !== 'answer') throw new SignallingError(400, 'Invalid SDP type');
  if (typeof body !== 'string') throw new SignallingError(400, 'SDP must be a string');
  return body;
}

/** Checks candidates without using them: ICE-lite learns the peer's addresses from its checks. */
function checkCandidates(candidates: unknown): void {
  if (candidates === undefined || candidates === null) throw new SignallingError(400, 'There is no candidate list');
  if (!Array.isArray(candidates)) throw new SignallingError(400, 'Candidates must be array');
  for (const [index, entry] of candidates.entries()) {
    const candidate = typeof entry === 'object' && entry !== null ? (entry as Fields).candidate : entry;
    const valid = typeof candidate === 'string' && (candidate === '' || candidate.startsWith('candidate:'));
    if (!valid || index >= MAX_CANDIDATES) throw new SignallingError(400, `Invalid candidate: ${echo(candidate)}`);
  }
}

function echo(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.slice(0, MAX_ECHO);
}
