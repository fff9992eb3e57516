/** Whether a call or a connection failed because nothing listens there, which the machine itself says. */
export function isRefusal({ cause }: Error): boolean {
  const reasons: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return reasons.every((reason) => (reason as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED');
}
