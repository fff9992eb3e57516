import { Program } from '../media/ffmpeg.ts';

/** Starts a program that does not run as root, such as VLC. */
export function asNobody(command: readonly string[], home: string): Program {
  const drop = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const [program = '', ...args] = process.getuid?.() === 0 ? [...drop, ...command] : command;
  return new Program(program, args, { ...process.env, HOME: home });
}
