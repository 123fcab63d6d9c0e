// Children in a wanted order, with as few moves as it takes: what stands right is never touched.

/** Makes `nodes` the children of `parent`. One that goes up or down costs one move, whatever the number of others. */
export function place(parent, nodes) {
  const kept = new Set(nodes);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const node of nodes) {
    if (at && at !== node && at.nextElementSibling === node) {
      at.remove(); // it goes down, and is put in when its turn comes
      at = node;
    }
    if (at === node) at = node.nextElementSibling;
    else parent.insertBefore(node, at);
  }
}
