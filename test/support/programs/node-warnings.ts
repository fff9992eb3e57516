/**
 * The warnings of Node in what a process wrote on standard error, one a line: no test lets them pass in a server.
 * @throws Error with all of them
 */
export function refuseWarnings(stderr: string): void {
  const warnings = stderr.match(/^\(node:\d+\) .*$/gm);
  if (warnings !== null) throw new Error(`the server got warnings of Node: ${warnings.join('; ')}`);
}
